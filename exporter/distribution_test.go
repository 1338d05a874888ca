package exporter

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// callTime is a variable of the call profile.
const callTime = "mpit_call_time_MPI_Send"

// withDistribution adds to a rank what the call profile has of one function on a communicator halo.
func withDistribution(cfg mpittest.Config, durations ...time.Duration) mpittest.Config {
	cfg.Variables = append(cfg.Variables, mpittest.DistributionVariable(callTime, mpit.BindComm))
	cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 2, Created: testTime})
	cfg.Values = append(cfg.Values, mpittest.Value{Name: callTime, Class: mpit.ClassTimer, Object: uint32(len(cfg.Objects)), Values: mpittest.Distribution(durations...)})
	return cfg
}
