package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Strings that would like to be something else than text.
const (
	htmlImage = `<img src=x onerror="window.hacked='image'">`
	script    = `</script><script>window.hacked='script'</script>`
	quotes    = `" onfocus="window.hacked='attribute'" autofocus x="'` + "`${window.hacked='template'}`"
	lines     = "two\nlines\r\tand \x1b[31m"
	reverse   = "abc\u202egnp.exe\u2066\u200f"
	address   = `javascript:window.hacked='address'`
	proto     = "__proto__"
)

var hostile = []string{htmlImage, script, quotes, lines, reverse, address, proto, "constructor", "", "\x00",
	strings.Repeat("long ", 2000), "https://example.com/a.js", "&lt;b&gt;", "{{.Version}}"}

// hostileRank says such things wherever a rank may say anything.
func hostileRank() mpittest.Config {
	cfg := mpittest.Config{
		Hello: mpit.Hello{
			PID: 1, Rank: 0, Size: 1, AgentVersion: htmlImage, LibraryVersion: "Open MPI v" + htmlImage,
			Host: script, Executable: htmlImage + lines + reverse,
			Attributes: map[string]string{"MPIT_JOB_ID": htmlImage, "SLURM_JOB_NAME": quotes,
				"SLURM_JOB_PARTITION": reverse, "ppid": "1"},
		},
		Objects: []mpit.Object{},
	}
	enum := &mpit.Enum{Name: htmlImage}
	for i, s := range hostile {
		enum.Items = append(enum.Items, mpit.EnumItem{Value: int64(i), Name: s})
		cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Name: s, Size: 1,
			Details: []mpit.Detail{{Key: "x", Value: s[:min(len(s), 100)]}}})
	}
	for i, s := range hostile {
		v := mpit.Variable{
			Index: i, Name: s, Description: s, Class: mpit.ClassLevel, Datatype: mpit.DatatypeUnsignedLongLong,
			DatatypeBytes: 8, Bind: mpit.BindComm,
			Verbosity: mpit.VerbosityUserBasic, Continuous: true,
		}
		if s == lines {
			v.Class, v.Datatype, v.DatatypeBytes, v.Enum, v.Bind = mpit.ClassState, mpit.DatatypeInt, 4, enum,
				mpit.BindNone
		}
		cfg.Variables = append(cfg.Variables, v)
		next := (i + 1) % len(hostile)
		cfg.Categories = append(cfg.Categories, mpit.Category{ // in a circle
			Index: i, Name: s, Description: s, Variables: []int{i}, Subcategories: []int{next, i},
		})
	}
	return cfg
}

// What ranks call their things is shown, and is nothing but text.
func TestHostileNamesStayText(t *testing.T) {
	t.Parallel()
	server := suite.Exporter(t)
	r := mpittest.New(hostileRank())
	require.NoError(t, r.Connect(t.Context(), server.Socket))
	t.Cleanup(r.Kill)
	u := startBrowser(t).open(t, server.URL("/"))
	u.await(`document.querySelectorAll("#values tbody data.value").length > 20 && !document.getElementById("categories").hidden`)
	text := evaluate[string](u, `document.body.innerText`)
	for _, s := range []string{htmlImage, script, quotes, address} {
		assert.Contains(t, text, s, "it is shown as it is")
	}
	assert.Contains(t, text, `two\nlines\r\tand \u001b[31m`)
	assert.Contains(t, text, `abc\u202egnp.exe\u2066\u200f`)
	for _, c := range "\u202e\u2066\u200f\x1b" {
		assert.NotContains(t, evaluate[string](u, `document.body.textContent`), string(c),
			"what turns or hides text is written out")
	}
	assert.Contains(t, evaluate[string](u, "document.title"), "img src=x", "the job's name is the page's title")

	// Through all that a person may do with it.
	u.script(`document.querySelectorAll("#tree [role=treeitem]").forEach((item) => item.click())`)
	u.script(`document.querySelector("#tree [role=treeitem]").click()`)
	u.script(`document.querySelectorAll("#jobs a, #rank-table a").forEach((a) => a.click())`)
	u.await(`location.hash.includes("onerror")`)
	u.script(`location.reload()`)
	u.await(`document.querySelectorAll("#values tbody data.value").length > 20`)

	assert.Equal(t, "undefined", evaluate[string](u, `typeof window.hacked`))
	assert.Equal(t, 1, evaluate[int](u, `document.scripts.length`))
	assert.Zero(t, evaluate[int](u,
		`document.querySelectorAll("img, iframe, object, embed, base, form, style, [onerror], [onfocus], [autofocus], [style]").length`))
	assert.Zero(t, evaluate[int](u,
		`[...document.querySelectorAll("#live a")].filter((a) => a.protocol !== "http:" || a.origin !== location.origin).length`))
	assert.Equal(t, "undefined", evaluate[string](u, `typeof ({}).name`), "nothing has got into all objects")

	// Even somebody who got a text into a sink would be stopped by the browser.
	assert.Equal(t, "TypeError", evaluate[string](u,
		`(() => { try { document.body.innerHTML = "<b>"; return "" } catch (e) { return e.name } })()`))
	u.forgive("This document requires 'TrustedHTML'")
}
