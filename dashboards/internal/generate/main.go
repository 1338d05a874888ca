// Command generate writes the dashboards' JSON into the working directory; see dashboards.go.
package main

import (
	"fmt"
	"os"

	"github.com/mpit-exporter/mpit-exporter/dashboards"
)

func main() {
	if err := dashboards.Write("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
