package zoo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Outcome is how good an answer is. A larger one is worse.
type Outcome int

// The four of them.
const (
	Right Outcome = iota
	Silent
	Misleading
	Wrong
)

func (o Outcome) String() string { return [...]string{"right", "silent", "misleading", "wrong"}[o] }

// Said is what a screen said of a job.
type Said struct {
	Second float64 // since the first look
	State  string  // the screen's word
	Text   string
	Ranks  []int // that it names as those who hold the others up
}

// Judgement is an outcome with its reason.
type Judgement struct {
	Outcome Outcome
	Why     string
}

// words are what the present verdict's words stand for in the table of states.
var words = map[string][]string{
	"waiting":      {"deadlock", "waits for a rank", "wrong program"},
	"cannot go on": {"deadlock", "wrong program"},
}

// meanings are the states that a screen's word may stand for.
func meanings(word string) []string {
	if of, ok := words[word]; ok {
		return of
	}
	return []string{word}
}

// one is a rank that a sentence names: not the ranks that wait, which are named in the plural, or with what they have
// done.
var one = regexp.MustCompile(`\brank (\d+)\b( (?:has|have) (?:been in|waited)| waits? )?`)

// NamedIn are the ranks that a sentence blames: all that it names one by one, but for those that it says wait.
func NamedIn(text string) (ranks []int) {
	for _, m := range one.FindAllStringSubmatch(text, -1) {
		if rank, err := strconv.Atoi(m[1]); err == nil && m[2] == "" && !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func anyOf[T comparable](list, of []T) bool {
	return slices.ContainsFunc(list, func(x T) bool { return slices.Contains(of, x) })
}

// Judge says how good an answer is, from the time on at which it is to be right.
func (k *Kind) Judge(d Draw, s Said) Judgement {
	if j := k.JudgeNames(d, s); j.Outcome == Wrong {
		return j
	}
	said := meanings(s.State)
	switch {
	case anyOf(said, k.State):
		return k.complete(d, s)
	case s.State == "unknown" || s.State == "":
		return Judgement{Silent, "no state"}
	case k.Healthy():
		return Judgement{Wrong, "says " + s.State}
	case k.mayLackCores(s):
		return Judgement{Right, "no core"}
	case anyOf(said, k.Also):
		return Judgement{Silent, "says " + s.State}
	case s.State == "healthy":
		return Judgement{Wrong, "says healthy"}
	}
	return Judgement{Misleading, "says " + s.State}
}

// mayLackCores is for an answer that the ranks have no core. With more ranks than cores that is right, whatever else is,
// and which of them got none the kernel knows.
func (k *Kind) mayLackCores(s Said) bool {
	return !k.Pinned && slices.Contains(meanings(s.State), "no core")
}

// JudgeNames says whether an answer names a rank that can't be guilty, which is wrong at any time.
func (k *Kind) JudgeNames(d Draw, s Said) Judgement {
	if k.mayLackCores(s) {
		return Judgement{}
	}
	allowed := append(k.ranks(d, k.Name), k.ranks(d, k.May)...)
	for _, rank := range s.Ranks {
		if !slices.Contains(allowed, rank) {
			return Judgement{Wrong, fmt.Sprintf("names rank %d", rank)}
		}
	}
	return Judgement{}
}

// complete judges an answer with a right state.
func (k *Kind) complete(d Draw, s Said) Judgement {
	if len(k.Name) > 0 && !anyOf(s.Ranks, k.ranks(d, k.Name)) {
		return Judgement{Silent, "names no rank"}
	}
	for _, word := range k.Says {
		word = strings.NewReplacer("@", d.Name, "#", strconv.Itoa(d.Tag)).Replace(word)
		if !strings.Contains(s.Text, word) {
			return Judgement{Silent, "doesn't say " + word}
		}
	}
	return Judgement{Right, ""}
}

// Score is what is said of a run on one screen.
type Score struct {
	Judgement         // the worst from the time on at which it is to be right, and of names at any time
	Until     float64 // seconds until it was right for good; -1: it never was
	Flips     int     // how often the word changed after it was right first
	Last      Said
}

// ScoreOf judges all that a screen has said during a run, in order.
func (k *Kind) ScoreOf(d Draw, said []Said) Score {
	score := Score{Until: -1}
	if len(said) == 0 {
		return Score{Judgement: Judgement{Silent, "was never asked"}, Until: -1}
	}
	score.Last = said[len(said)-1]
	due := min(float64(k.Within), score.Last.Second) // the last look always counts
	first := false
	for i, s := range said {
		j := k.JudgeNames(d, s)
		full := k.Judge(d, s)
		if s.Second >= due || k.Healthy() && s.State != "unknown" {
			j = full
		}
		if j.Outcome > score.Outcome {
			score.Judgement = j
			if j.Outcome == Wrong {
				score.Why += fmt.Sprintf(" after %.0f s: %s: %s", s.Second, s.State, s.Text)
			}
		}
		switch {
		case full.Outcome != Right:
			score.Until = -1
		case score.Until < 0:
			score.Until = s.Second
		}
		if first && s.State != said[i-1].State {
			score.Flips++
		}
		first = first || full.Outcome == Right
	}
	return score
}
