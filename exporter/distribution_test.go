package exporter

import (
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// callTime is a variable of the call profile.
const callTime = "mpit_call_time_MPI_Send"

// distributionElements is how many elements it has: the time, and 44 buckets.
const distributionElements = 45

// withDistribution adds to a rank what the call profile has of one function: three calls that took 1 unit, 2^20 units and 5000 s.
func withDistribution(cfg mpittest.Config) mpittest.Config {
	cfg.Variables = append(cfg.Variables, mpit.Variable{
		Name: callTime, Class: mpit.ClassTimer, Datatype: mpit.DatatypeUint64, DatatypeBytes: 8, Verbosity: mpit.VerbosityUserBasic,
		Description: "Time in MPI_Send.", ReadOnly: true, Continuous: true, Distribution: true, Bind: mpit.BindComm,
	})
	cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 2, Created: testTime})
	if cfg.Elements == nil {
		cfg.Elements = map[string]int{}
	}
	cfg.Elements[callTime] = distributionElements
	elements := make([]any, distributionElements)
	for i := range elements {
		elements[i] = 0
	}
	elements[0], elements[1], elements[1+20], elements[distributionElements-1] = 1+1<<20+5000<<30, 1, 1, 1
	cfg.Values = append(cfg.Values, mpittest.Value{Name: callTime, Class: mpit.ClassTimer, Object: uint32(len(cfg.Objects)), Values: elements})
	return cfg
}
