package zoo

import (
	"bytes"
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed answers.yaml
var answers []byte

// States of a job, the worst first. The verdict of today has other words for some of them (words).
var states = []string{"crashed", "cancelled", "wrong program", "deadlock", "waits for a rank", "no core", "late rank",
	"late in turn", "communication", "idle", "healthy", "unknown"}

// Kind is a program of the zoo and the true answer.
type Kind struct {
	Kind, Class, Program string
	Command              []string // an installed program, in place of Program
	Language             string   // empty: C
	Libraries            []string // those that it can be run with; none: both
	Ranks                int      // 0: 2
	Busy                 int      // ranks and other processes that use a core; 0: as many as ranks
	Pinned               bool     // each rank has a core of its own
	Cores                string   // that all ranks share
	Cancel               int      // seconds after which the launcher is ended; 0: never
	Ends                 bool     // the job ends by itself, or is ended

	State  []string // any of them is right
	Also   []string // true, and says less
	Name   []string // roles, one of which a right answer names
	May    []string // roles that may be named besides
	Says   []string // what the sentence has; @ is the communicator's name, # the tag
	Within int      // seconds from the first look until it is to be right
	Alert  bool     // an alert may be raised; one may always be for what is no trouble of a healthy job's
	Why    string   // for whoever reads the answer
}

// Kinds are all there are.
func Kinds() ([]Kind, error) {
	var file struct{ Kinds []Kind }
	d := yaml.NewDecoder(bytes.NewReader(answers))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("answers.yaml: %w", err)
	}
	for i := range file.Kinds {
		if k := &file.Kinds[i]; k.Ranks == 0 {
			k.Ranks = 2
		}
	}
	return file.Kinds, nil
}

// ID tells a kind from all others, and is a part of file names.
func (k *Kind) ID() string {
	id := k.Class + "-" + k.Kind
	if k.Language != "" {
		id += "-" + strings.ToLower(strings.Trim(k.Language, "+"))
	}
	return id
}

// Healthy says that nothing is wrong with it.
func (k *Kind) Healthy() bool { return k.Class == "healthy" }

// busy is how many cores it could use.
func (k *Kind) busy() int { return max(k.Busy, k.Ranks) }

// Draw is what differs from run to run.
type Draw struct {
	Culprit, Partner int // ranks in MPI_COMM_WORLD
	Tag              int
	Name             string // of the communicator
	Order            uint32 // of the ranks in it
}

// DrawFor draws for one run of a kind.
func (k *Kind) DrawFor(seed uint64, library string) Draw {
	h := fnv.New64a()
	fmt.Fprint(h, k.ID(), " ", library)
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	d := Draw{Culprit: r.IntN(k.Ranks), Tag: 100 + r.IntN(900), Order: uint32(r.IntN(2 * k.Ranks))}
	if k.Ranks > 1 {
		d.Partner = (d.Culprit + 1 + r.IntN(k.Ranks-1)) % k.Ranks
	}
	for range 4 {
		d.Name += string("bdfgklmnprst"[r.IntN(12)]) + string("aeiou"[r.IntN(5)])
	}
	if k.Program == "collectives.f90" {
		d.Order = 0
	}
	return d
}

// Args are the program's.
func (k *Kind) Args(d Draw) []string {
	return []string{k.Kind, strconv.Itoa(d.Culprit), strconv.Itoa(d.Partner), strconv.Itoa(d.Tag), d.Name,
		strconv.FormatUint(uint64(d.Order), 10)}
}

// ranks are those in roles: culprit, partner, all, and part for the culprit's half of the world.
func (k *Kind) ranks(d Draw, roles []string) (ranks []int) {
	for rank := range k.Ranks {
		if slices.ContainsFunc(roles, func(role string) bool {
			switch role {
			case "culprit":
				return rank == d.Culprit
			case "partner":
				return rank == d.Partner
			case "part":
				return (rank < k.Ranks/2) == (d.Culprit < k.Ranks/2)
			}
			return role == "all"
		}) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
