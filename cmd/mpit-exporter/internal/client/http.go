// Package client asks a running exporter: over HTTP, as list and top do (HTTP), or over its control socket on this
// node, as cvar and push --once do (Control).
//
// What is asked and what an answer means is up to the subcommand. Here are the ways there, and what to tell the user
// if nobody answers.
package client

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/pprof/profile"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

const (
	fetchTimeout = 30 * time.Second
	room         = 1 << 30 // for an exporter's answer (Fetch)
)

// HTTP asks a running exporter over HTTP.
type HTTP struct {
	URL string
	// Labels of the ranks that are meant; "" stands for any.
	jobID, world, user, rank string
	more                     url.Values // what else is asked
}

// AddFlags adds those that say where the exporter is, and of which jobs ranks are meant.
func (c *HTTP) AddFlags(cmd *kingpin.CmdClause) {
	cmd.Flag("url", "Address of the exporter.").Default("http://localhost:" + cli.DefaultPort).StringVar(&c.URL)
	cmd.Flag("jobid", "Show only ranks of this job.").PlaceHolder("ID").StringVar(&c.jobID)
	cmd.Flag("world", "Show only ranks of this MPI_COMM_WORLD.").PlaceHolder("WORLD").StringVar(&c.world)
	cmd.Flag("user", "Show only ranks of this user.").PlaceHolder("NAME").StringVar(&c.user)
}

// AddRankFlag adds one that chooses a rank.
func (c *HTTP) AddRankFlag(cmd *kingpin.CmdClause) {
	cmd.Flag("rank", "Show only this rank.").PlaceHolder("N").StringVar(&c.rank)
}

// Labels are those that ranks must have that are meant.
func (c *HTTP) Labels() map[string]string {
	labels := map[string]string{"jobid": c.jobID, "world": c.world, "user": c.user, "rank": c.rank}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// With is the same with a parameter more, which may be a label.
func (c *HTTP) With(name, value string) *HTTP {
	with := *c
	with.more = maps.Clone(c.more)
	if with.more == nil {
		with.more = url.Values{}
	}
	with.more.Set(name, value)
	return &with
}

func (c *HTTP) query() string {
	query := url.Values{}
	for name, value := range c.Labels() {
		query.Set(name, value)
	}
	maps.Copy(query, c.more)
	return query.Encode()
}

// namedJobs is how many jobs are named to a user who has named one that isn't there.
const namedJobs = 5

// others says which jobs the exporter has; where it can't be known, nothing.
func (c *HTTP) others(ctx context.Context, base *url.URL) string {
	var list struct {
		Jobs []struct {
			Job struct {
				ID string `json:"jobid"`
			} `json:"job"`
		} `json:"jobs"`
	}
	if Fetch(ctx, base.JoinPath("api", "v1", "jobs"), cli.ProgramName, room, func(d *json.Decoder) error {
		return d.Decode(&list)
	}) != nil {
		return ""
	}
	if len(list.Jobs) == 0 {
		return ", nor any other: start programs with " + cli.ProgramName + " exec"
	}
	var ids []string
	for _, j := range list.Jobs[:min(len(list.Jobs), namedJobs)] {
		ids = append(ids, table.Middle(mapping.OneLine(j.Job.ID), table.MaxCell))
	}
	if more := len(list.Jobs) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return "; it has " + strings.Join(ids, ", ")
}

// Get asks for what the exporter's API has under a name. command is whose errors they are, remedy what else may be
// done where no exporter answers.
func (c *HTTP) Get(ctx context.Context, command, remedy, what string, answer any) error {
	return c.get(ctx, command, remedy, what, func(r io.Reader) error { return json.NewDecoder(r).Decode(answer) })
}

// maxProfile is how large a profile may be, in bytes.
const maxProfile = 256 << 20

// Profile asks for the profile of call sites of the one MPI_COMM_WORLD that is meant. Errors are as Get's.
func (c *HTTP) Profile(ctx context.Context, command, remedy string) (p *profile.Profile, err error) {
	err = c.get(ctx, command, remedy, "pprof", func(r io.Reader) error {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(unpacked, maxProfile))
		if err != nil {
			return err
		}
		p, err = profile.ParseUncompressed(text)
		return err
	})
	return p, err
}

func (c *HTTP) get(ctx context.Context, command, remedy, what string, decode func(io.Reader) error) error {
	base, err := url.Parse(c.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return cli.Usagef("%s: --url %q: an address such as http://localhost:%s is needed", command, c.URL,
			cli.DefaultPort)
	}
	u := base.JoinPath("api", "v1", what)
	u.RawQuery = c.query()

	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("no whole answer within %s", fetchTimeout))
	defer cancel()
	err = FetchBytes(ctx, u, "an "+cli.ProgramName, room, decode)
	var answered *StatusError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: no exporter answers at %s; start one, or say with --url where it is%s", command,
			base.Redacted(), remedy)
	case c.jobID != "" && errors.As(err, &answered) && answered.Code == http.StatusNotFound:
		return fmt.Errorf("%s: %s has no job %s%s", command, base.Redacted(), c.jobID, c.others(ctx, base))
	case errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%s: %w; choose a job with --jobid and --user", command, err)
	case err != nil:
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
