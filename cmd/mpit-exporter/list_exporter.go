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

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

const (
	fetchTimeout = 30 * time.Second
	maxAnswer    = 256 << 20 // bytes of an exporter's answer
)

// fetchCatalogues asks a running exporter.
func fetchCatalogues(ctx context.Context, address, jobID, world, number string) (list exporter.CatalogueList, err error) {
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return list, usageErrorf("list: --url %q: an address such as http://localhost:%s is needed", address, defaultPort)
	}
	u := base.JoinPath("api", "v1", "catalogue")
	query := url.Values{}
	for name, value := range map[string]string{"jobid": jobID, "world": world, "rank": number} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()

	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return list, fmt.Errorf("list: asking %s: %w", base.Redacted(), err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return list, fetchError(base, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return list, fmt.Errorf("list: reading the answer of %s: %w", base.Redacted(), err)
	}
	if response.StatusCode != http.StatusOK {
		return list, fmt.Errorf("list: %s answers %s: %s", base.Redacted(), response.Status, answerError(body))
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return list, fmt.Errorf("list: %s does not answer like an mpit-exporter: %w", base.Redacted(), err)
	}
	return list, nil
}

func fetchError(base *url.URL, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("list: no exporter answers at %s; start one, or say with --url where it is; "+
			"or list the variables of a program: %s list -- ./program", base.Redacted(), programName)
	}
	// The URL stands in url.Error with the query, which says nothing to a user.
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("list: asking %s: %w", base.Redacted(), err)
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
