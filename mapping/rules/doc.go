// Package rules is the language of rule files: what a rule may say, whether it makes sense, and what all rules together
// say of one variable. It also holds the rules that are shipped (defaults).
//
// To read a file, begin with [Parse] and [Load]: ruleyaml.go reads YAML and knows where everything stands, compile.go
// checks each key of a rule, check.go whether the rule makes sense, load.go merges what files say.
// To learn what rules say of a variable, begin with [Compile], [Set.Decide] and the table in property.go, which has all
// that a rule can set.
//
// Mistakes are rows in rulefile_test.go. What rules do to values, and what Explain says, is tested in package series,
// which has a rank to show it on.
//
// It knows no ranks and no values. docs/rules.md describes the language.
package rules
