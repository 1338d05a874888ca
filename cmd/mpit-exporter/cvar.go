package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// cvarCommand reads and sets control variables of running ranks through the control socket of the exporter on this
// node.
type cvarCommand struct {
	setName, getName string // of the two commands
	control          client.Control

	job, world    string
	uid           string
	ranks, object string
	output        string
	assignment    string // of set: NAME=VALUE
	variable      string // of get
}

func newCvarCommand(app *kingpin.Application) *cvarCommand {
	c := &cvarCommand{}
	cmd := app.Command("cvar", "Read and set control variables of running ranks, through the exporter on this node.")
	set := cmd.Command("set", "Set a control variable: mpit-exporter cvar set --jobid=17 --rank=0,2-5 NAME=VALUE. "+
		"Only root and the job's owner may, and only in jobs that were started with exec --allow-write. Elements of "+
		"arrays have commas between them; enumerations take an item's name or number. Exits with 1 where no rank "+
		"was changed, with 3 where one failed after it or others were: the table says what each rank has then.")
	set.HelpLong("mpit-exporter cvar set --jobid=17 coll_tuned_use_dynamic_rules=1\n" +
		"mpit-exporter cvar set --jobid=17 --rank=0,2-5 NAME=VALUE")
	get := cmd.Command("get", "Read a control variable: mpit-exporter cvar get --jobid=17 NAME.")
	get.HelpLong("mpit-exporter cvar get --jobid=17 coll_tuned_use_dynamic_rules\n" +
		"mpit-exporter cvar get --jobid=17 --rank=0 NAME")
	c.setName, c.getName = set.FullCommand(), get.FullCommand()
	for _, cmd := range []*kingpin.CmdClause{set, get} {
		cmd.Flag("control.socket", client.SocketHelp).PlaceHolder("PATH").StringVar(&c.control.Socket)
		cmd.Flag("jobid", "Label jobid of the job; not needed where you have only one on this node.").
			PlaceHolder("ID").StringVar(&c.job)
		cmd.Flag("world", "Label world; not needed where the job has only one.").PlaceHolder("WORLD").
			StringVar(&c.world)
		cmd.Flag("uid", "Number of the user whose job it is, where several users have one of that name.").
			PlaceHolder("N").StringVar(&c.uid)
		cmd.Flag("rank", "Ranks, such as 0,2-5; without it all that are on this node.").PlaceHolder("RANKS").
			StringVar(&c.ranks)
		cmd.Flag("object", "Object that the variable is bound to: kind and name, such as comm:MPI_COMM_WORLD.").
			PlaceHolder("KIND:NAME").StringVar(&c.object)
		cmd.Flag("output", "table or json.").Short('o').Default("table").EnumVar(&c.output, "table", "json")
	}
	set.Arg("assignment", "NAME=VALUE").Required().StringVar(&c.assignment)
	get.Arg("name", "Name of the variable.").Required().StringVar(&c.variable)
	return c
}

// run asks the exporter and shows its answer.
func (c *cvarCommand) run(ctx context.Context, command string, std cli.Stdio) error {
	request, err := c.request(command)
	if err != nil {
		return err
	}
	answer, err := c.ask(ctx, command, request)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if c.output == "json" {
		err = cli.WriteJSON(std.Out, answer)
	} else {
		err = writeCvar(std.Out, command == c.setName, answer)
	}
	if err != nil {
		return fmt.Errorf("%s: writing: %w", command, err)
	}
	if answer.Result == control.OK {
		return nil
	}
	changed := func(r control.RankAnswer) bool { return r.State != control.Unchanged }
	if slices.ContainsFunc(answer.Ranks, changed) {
		return cli.Errorf(cli.Partial, "%s: failed: %s", command, mapping.OneLine(answer.Error))
	}
	return fmt.Errorf("%s: %s: %s", command, answer.Result, mapping.OneLine(answer.Error))
}

// request makes a request of the flags, and checks what can be checked here.
func (c *cvarCommand) request(command string) (*control.Request, error) {
	r := &control.Request{JobID: c.job, World: c.world, Name: c.variable}
	if command == c.setName {
		name, value, ok := strings.Cut(c.assignment, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("%s: %q: a name and a value are needed, NAME=VALUE", command, c.assignment)
		}
		r.Name, r.Value = name, &value
	} else if r.Name == "" || strings.Contains(r.Name, "=") {
		return nil, cli.Usagef("%s: %q: the name of a variable is needed", command, c.variable)
	}
	var err error
	if r.Ranks, err = control.ParseRanks(c.ranks); err != nil {
		return nil, cli.Usagef("%s: --rank: %w", command, err)
	}
	if c.object != "" {
		if r.Object, err = control.ParseObject(c.object); err != nil {
			return nil, cli.Usagef("%s: --object: %w", command, err)
		}
	}
	if c.uid != "" {
		uid, err := strconv.ParseUint(c.uid, 10, 32)
		if err != nil {
			return nil, cli.Usagef("%s: --uid: %q is no number of a user", command, c.uid)
		}
		id := uint32(uid)
		r.UID = &id
	}
	return r, nil
}

// ask sends the request over the control socket.
func (c *cvarCommand) ask(ctx context.Context, command string, r *control.Request) (*control.Answer, error) {
	method, path, body := http.MethodPost, "/api/v1/cvar", []byte(nil)
	if command == c.getName {
		query := url.Values{"name": {r.Name}}
		for name, value := range map[string]string{"jobid": r.JobID, "world": r.World, "uid": c.uid,
			"rank": units.Ranks(r.Ranks), "object": c.object} {
			if value != "" {
				query.Set(name, value)
			}
		}
		method, path = http.MethodGet, path+"?"+query.Encode()
	} else {
		var err error
		if body, err = json.Marshal(r); err != nil {
			return nil, err
		}
	}
	answer := &control.Answer{}
	err := c.control.Ask(ctx, method, path, body, func(text []byte) bool {
		return json.Unmarshal(text, answer) == nil && answer.Result != ""
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// writeCvar writes a table of what each rank answered.
func writeCvar(w io.Writer, set bool, a *control.Answer) error {
	if len(a.Ranks) == 0 {
		return nil
	}
	title := a.Name
	if a.Object != nil {
		title += " of " + a.Object.String()
	}
	if a.Scope != nil && a.Datatype != nil {
		title += fmt.Sprintf(" (%s, %s)", a.Scope, a.Datatype)
	}
	title += ", job " + a.JobID
	if a.World != "" {
		title += ", world " + a.World
	}
	fmt.Fprintln(w, mapping.OneLine(title))
	value := func(v *string) string {
		if v == nil {
			return "?"
		}
		if *v == "" {
			return `""`
		}
		return *v
	}
	heads := []string{"RANK", "VALUE"}
	if set {
		heads = []string{"RANK", "STATE", "OLD", "NOW", "ERROR"}
	}
	var rows [][]string
	for i := range a.Ranks {
		r := &a.Ranks[i]
		row := table.Clean(strconv.Itoa(r.Rank), value(r.Value))
		if set {
			row = table.Clean(row[0], r.State, table.Shorten(mapping.OneLine(value(r.Old)), table.MaxCell),
				table.Shorten(row[1], table.MaxCell), r.Error)
		}
		rows = append(rows, row)
	}
	return table.Write(w, heads, rows)
}
