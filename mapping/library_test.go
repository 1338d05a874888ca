package mapping

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseLibrary(t *testing.T) {
	for text, want := range map[string]Library{
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4": {OpenMPI, "4.1.4"},
		"Open MPI v6.0.0rc2, package: Open MPI root@x Distribution":                {OpenMPI, "6.0.0rc2"},
		"MPICH Version: 4.0.2":                              {MPICH, "4.0.2"},
		"MPICH Version:\t4.3.0b1\nMPICH Release date:\tMon": {MPICH, "4.3.0b1"},
		"MVAPICH2 Version: 2.3.7":                           {MVAPICH, "2.3.7"},
		"MVAPICH2 Version      :\t2.3.7":                    {MVAPICH, "2.3.7"},
		"MVAPICH Version: 4.0":                              {MVAPICH, "4.0"},
		"Intel(R) MPI Library 2021.10 for Linux* OS":        {IntelMPI, "2021.10"},
		"CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)":     {CrayMPICH, "8.1.25.17"},
		"MPI VERSION    : CRAY MPICH version 7.7.14 (ANL base 3.2)\nMPI BUILD INFO : Built Tue May 19": {CrayMPICH,
			"7.7.14"},
		"Open MPI": {OpenMPI, ""},
		"Fujitsu MPI Library 4.0.1 (based on something else)": {},
		"": {},
	} {
		assert.Equal(t, want, ParseLibrary(text), "%q", text)
	}
}

func FuzzParseLibrary(f *testing.F) {
	f.Add("Open MPI v4.1.4, package: x")
	f.Add("MVAPICH2 Version: 2.3.7")
	f.Fuzz(func(t *testing.T, s string) {
		l := ParseLibrary(s)
		if len(l.Version) > 32 || l.Name == "" && l.Version != "" {
			t.Errorf("%q gives %+v", s, l)
		}
	})
}
