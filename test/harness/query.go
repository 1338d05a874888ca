package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// QueryAt asks for an instant vector. A scalar is a vector of one sample without labels; of a native histogram the
// value is its count.
func (p *Prometheus) QueryAt(ctx context.Context, expression string, at time.Time) ([]Sample, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric    Labels
				Value     [2]any
				Histogram [2]any
			}
		}
	}
	if err := p.ask(ctx, "query", url.Values{"query": {expression}, "time": {timestamp(at)}}, &answer); err != nil {
		return nil, fmt.Errorf("asking Prometheus for %s: %w", expression, err)
	}
	var samples []Sample
	for _, result := range answer.Data.Result {
		if result.Histogram[1] != nil {
			result.Value = result.Histogram
		}
		sample, err := sampleOf(result.Metric, result.Value)
		if err != nil {
			return nil, fmt.Errorf("reading Prometheus' answer to %s: %w", expression, err)
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// QueryRange asks for values from one time to another, and returns all of all series.
func (p *Prometheus) QueryRange(ctx context.Context, expression string, from, to time.Time,
	step time.Duration) ([]Sample, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric     Labels
				Values     [][2]any
				Histograms [][2]any
			}
		}
	}
	err := p.ask(ctx, "query_range", url.Values{
		"query": {expression}, "start": {timestamp(from)}, "end": {timestamp(to)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}, &answer)
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for %s: %w", expression, err)
	}
	var samples []Sample
	for _, result := range answer.Data.Result {
		for _, value := range slices.Concat(result.Values, result.Histograms) {
			sample, err := sampleOf(result.Metric, value)
			if err != nil {
				return nil, fmt.Errorf("reading Prometheus' answer to %s: %w", expression, err)
			}
			samples = append(samples, sample)
		}
	}
	return samples, nil
}

// LabelValues asks for the values of a label in the series that a selector finds between two times.
func (p *Prometheus) LabelValues(ctx context.Context, selector, label string, from, to time.Time) ([]string, error) {
	var answer struct{ Data []string }
	err := p.ask(ctx, "label/"+url.PathEscape(label)+"/values", url.Values{
		"match[]": {selector}, "start": {timestamp(from)}, "end": {timestamp(to)},
	}, &answer)
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for values of %s in %s: %w", label, selector, err)
	}
	return answer.Data, nil
}

// ask reads the answer of Prometheus' API into an answer.
func (p *Prometheus) ask(ctx context.Context, path string, parameters url.Values, answer any) error {
	body, _, err := get(ctx, "http://"+p.address+"/api/v1/"+path+"?"+parameters.Encode(), "")
	if err != nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

func timestamp(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}

func sampleOf(labels Labels, value [2]any) (Sample, error) {
	if histogram, ok := value[1].(map[string]any); ok {
		value[1] = histogram["count"]
	}
	text, _ := value[1].(string)
	at, _ := value[0].(float64)
	v, err := strconv.ParseFloat(text, 64)
	return Sample{Labels: labels, Value: v, At: at}, err
}
