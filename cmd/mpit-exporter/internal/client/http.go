// Package client asks a running exporter: at an address, or over the control socket of this node's if none is given, as
// list and top do (HTTP), or always over the control socket, as cvar, page and push --once do (Control).
//
// What is asked and what an answer means is up to the subcommand. Here are the ways there, and what to tell the user
// if nobody answers.
package client

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/pprof/profile"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

const (
	fetchTimeout = 30 * time.Second
	room         = 1 << 30 // for an exporter's answer (Fetch)
)

const defaultURL = "http://localhost:" + cli.DefaultPort

// HTTP asks a running exporter over HTTP.
type HTTP struct {
	URL    string
	named  bool          // by the user
	Window time.Duration // of reports; 0: the exporter's default
	// Labels of the ranks that are meant; "" stands for any.
	jobID, world, user, rank string
}

// AddFlags adds those that say where the exporter is, and of which jobs ranks are meant.
func (c *HTTP) AddFlags(cmd *kingpin.CmdClause) {
	cmd.Flag("url", "Address of the exporter. By default the control socket of this node's is asked, if there is one.").
		Default(defaultURL).IsSetByUser(&c.named).StringVar(&c.URL)
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

// Of returns what asks about one MPI_COMM_WORLD.
func (c HTTP) Of(jobID, world, user string) *HTTP {
	c.jobID, c.world, c.user = jobID, world, user
	return &c
}

// over is what speaks to the exporter: where none is named over the control socket of this node's, where every user may
// ask, if there is one.
func (c *HTTP) over() *http.Client {
	if c.named || c.URL != defaultURL {
		return http.DefaultClient
	}
	return &http.Client{Transport: transport(func(ctx context.Context, network, address string) (net.Conn, error) {
		if conn, err := new(Control).dial(ctx); err == nil {
			return conn, nil
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})}
}

func (c *HTTP) query() string {
	query := url.Values{}
	for name, value := range c.Labels() {
		query.Set(name, value)
	}
	if c.Window != 0 {
		query.Set("window", c.Window.String())
	}
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
	if Fetch(ctx, c.over(), base.JoinPath("api", "v1", "jobs"), cli.ProgramName, room, JSON(&list)) != nil {
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
	return c.get(ctx, command, remedy, what, JSON(answer))
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
		return cli.Usagef("%s: --url %q: an address such as %s is needed", command, c.URL, defaultURL)
	}
	u := base.JoinPath("api", "v1", what)
	u.RawQuery = c.query()

	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("no whole answer within %s", fetchTimeout))
	defer cancel()
	err = Fetch(ctx, c.over(), u, "an "+cli.ProgramName, room, decode)
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

// Own says whether what belongs to a user is the caller's own. Anybody's ranks may claim any job; whose they are is the
// kernel's word, so one's own come first wherever there is a choice.
func Own(uid uint32) bool { return int(uid) == os.Getuid() }

// OwnFirst moves the caller's own to the front, and keeps the order otherwise.
func OwnFirst[T any](all []T, uid func(*T) uint32) {
	rank := func(of *T) int {
		if Own(uid(of)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(rank(&a), rank(&b)) })
}

// Values asks for the values of ranks, the caller's own first. The exporter shares the room in an answer between users.
func (c *HTTP) Values(ctx context.Context, command, remedy string) (list api.ValueList, err error) {
	err = c.Get(ctx, command, remedy, "values", &list)
	OwnFirst(list.Ranks, func(r *api.RankValues) uint32 { return r.Rank.UID })
	return list, err
}

// Catalogues asks for catalogues, in the same order.
func (c *HTTP) Catalogues(ctx context.Context, command, remedy string) (list api.CatalogueList, err error) {
	err = c.Get(ctx, command, remedy, "catalogue", &list)
	OwnFirst(list.Catalogues, func(r *api.Catalogue) uint32 { return r.Rank.UID })
	return list, err
}
