package conformance

// outcome is what a check has found. A check returns it only after asserting it; where an assertion fails there is
// none.
type outcome struct {
	word   string
	reason string // of notSupported; in one sentence
}

var (
	// works: what the library offers comes through, and the values are what they must be.
	works = outcome{word: "works"}
	// notOffered: the library has nothing of the kind, as listing everything it has has shown.
	notOffered = outcome{word: "not offered"}
	// notTested: the check did not run.
	notTested = outcome{word: "not tested"}
)

// notSupported: the library may offer it, and we don't take it.
func notSupported(reason string) outcome { return outcome{word: "not supported", reason: reason} }

// cannotTest: the library would have to do something that nobody can make it do. Only its being so decides that,
// never a failure.
func cannotTest(reason string) outcome { return outcome{word: "not tested", reason: reason} }
