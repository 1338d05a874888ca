// Package palette has the colours of what ranks do with their time.
package palette

import _ "embed" // palette.css

// CSS is the style sheet that says them.
//
//go:embed palette.css
var CSS string
