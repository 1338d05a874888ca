package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

const (
	fetchTimeout = 30 * time.Second
	maxAnswer    = 256 << 20 // bytes of an exporter's answer
)

// rankFlags choose among the ranks of an exporter, by their labels; "" stands for any.
type rankFlags struct{ jobID, world, user, rank string }

func (f *rankFlags) add(cmd *kingpin.CmdClause) {
	cmd.Flag("jobid", "Show only ranks of this job.").PlaceHolder("ID").StringVar(&f.jobID)
	cmd.Flag("world", "Show only ranks of this MPI_COMM_WORLD.").PlaceHolder("WORLD").StringVar(&f.world)
	cmd.Flag("user", "Show only ranks of this user.").PlaceHolder("NAME").StringVar(&f.user)
	cmd.Flag("rank", "Show only this rank.").PlaceHolder("N").StringVar(&f.rank)
}

func (f *rankFlags) query() string {
	query := url.Values{}
	for name, value := range map[string]string{"jobid": f.jobID, "world": f.world, "user": f.user, "rank": f.rank} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query.Encode()
}

// fetchCatalogues asks a running exporter.
func fetchCatalogues(ctx context.Context, address string, which rankFlags) (list api.CatalogueList, err error) {
	err = fetch(ctx, "list", "; or list the variables of a program: "+programName+" list -- ./program", address, "catalogue", which, &list)
	return list, err
}

// fetch asks a running exporter for what its API has of some ranks. command is whose errors they
// are, remedy what else may be done where no exporter answers.
func fetch(ctx context.Context, command, remedy, address, what string, which rankFlags, answer any) error {
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return usageErrorf("%s: --url %q: an address such as http://localhost:%s is needed", command, address, defaultPort)
	}
	u := base.JoinPath("api", "v1", what)
	u.RawQuery = which.query()

	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("%s: asking %s: %w", command, base.Redacted(), err)
	}
	response, err := http.DefaultClient.Do(request)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: no exporter answers at %s; start one, or say with --url where it is%s", command, base.Redacted(), remedy)
	case err != nil:
		// The URL stands in url.Error with the query, which says nothing to a user.
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return fmt.Errorf("%s: asking %s: %w", command, base.Redacted(), err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: reading the answer of %s: %w", command, base.Redacted(), err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s answers %s: %s", command, base.Redacted(), response.Status, answerError(body))
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: %s does not answer like an mpit-exporter: %w", command, base.Redacted(), err)
	}
	return nil
}

// answerError is the text of the API's error, or the beginning of whatever else was answered.
func answerError(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		text = answer.Error
	}
	return shorten(clean(strings.TrimSpace(text)), 200)
}
