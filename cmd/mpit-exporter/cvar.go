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
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// cvarCommand reads and sets control variables of running ranks through the control socket of the exporter on this
// node.
type cvarCommand struct {
	control client.Control

	job, world, uid, ranks, object string // as given
	output                         string
	argument                       string // NAME, of set NAME=VALUE
}

func newCvarCommand(app *kingpin.Application, do commands) {
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
	for _, cmd := range []*kingpin.CmdClause{set, get} {
		do[cmd.FullCommand()] = func(ctx context.Context, std cli.Stdio) error {
			return c.run(ctx, cmd.FullCommand(), cmd == set, std)
		}
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
	set.Arg("assignment", "NAME=VALUE").Required().StringVar(&c.argument)
	get.Arg("name", "Name of the variable.").Required().StringVar(&c.argument)
}

// run asks the exporter and shows its answer.
func (c *cvarCommand) run(ctx context.Context, command string, set bool, std cli.Stdio) error {
	method, path, body, err := c.request(command, set)
	if err != nil {
		return err
	}
	answer := &control.Answer{}
	err = c.control.Ask(ctx, method, path, body, func(text []byte) bool {
		return json.Unmarshal(text, answer) == nil && answer.Result != ""
	})
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if c.output == "json" {
		err = cli.WriteJSON(std.Out, answer)
	} else {
		err = writeCvar(std.Out, set, answer)
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
func (c *cvarCommand) request(command string, set bool) (method, path string, body []byte, err error) {
	name, value, assigned := strings.Cut(c.argument, "=")
	switch {
	case set && (!assigned || name == ""):
		return "", "", nil, cli.Usagef("%s: %q: a name and a value are needed, NAME=VALUE", command, c.argument)
	case !set && (assigned || name == ""):
		return "", "", nil, cli.Usagef("%s: %q: the name of a variable is needed", command, c.argument)
	}
	query := url.Values{"name": {name}}
	for parameter, value := range map[string]string{"jobid": c.job, "world": c.world, "uid": c.uid, "rank": c.ranks,
		"object": c.object} {
		if value != "" {
			query.Set(parameter, value)
		}
	}
	r, err := control.RequestOf(query)
	switch {
	case err != nil:
		return "", "", nil, cli.Usagef("%s: --%w", command, err)
	case !set:
		return http.MethodGet, "/api/v1/cvar?" + query.Encode(), nil, nil
	}
	r.Value = &value
	body, err = json.Marshal(r)
	return http.MethodPost, "/api/v1/cvar", body, err
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
