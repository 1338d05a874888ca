package exporter

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every relative link in the documentation leads to a file that is there and, with an anchor, to one of its headings.
func TestLinksLeadSomewhere(t *testing.T) {
	root := ".."
	pages := documentationPages(t, root)
	anchors, links := map[string]map[string]bool{}, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, l := range relativeLinks(string(text)) {
			links++
			if problem := follow(root, page, l.target, anchors); problem != "" {
				t.Errorf("%s:%d: %s: %s", strings.TrimPrefix(page, root+"/"), l.line, l.target, problem)
			}
		}
	}
	assert.Greater(t, links, 100, "links in %d pages: the test has lost sight of them", len(pages))
}

func documentationPages(t *testing.T, root string) []string {
	t.Helper()
	var pages []string
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mpit/agent/README.md"} {
		pages = append(pages, filepath.Join(root, page))
	}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"),
		func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".md" {
				pages = append(pages, path)
			}
			return err
		}))
	return pages
}

type link struct {
	line   int
	target string
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\(<?([^)\s>]+)[^)]*\)|(?:src|srcset|href)="([^"]+)"`)
	absolute   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// relativeLinks are those that stand in text, not in code.
func relativeLinks(markdown string) []link {
	var links []link
	for line, text := range prose(markdown) {
		for _, m := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, "``"), -1) {
			if target := m[1] + m[2]; !absolute.MatchString(target) {
				links = append(links, link{line, target})
			}
		}
	}
	return links
}

// prose yields lines with their numbers, but for those of fenced code.
func prose(markdown string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fence := ""
		for i, text := range strings.Split(markdown, "\n") {
			mark := strings.TrimSpace(text)
			switch {
			case fence != "":
				if strings.HasPrefix(mark, fence) {
					fence = ""
				}
			case strings.HasPrefix(mark, "```"), strings.HasPrefix(mark, "~~~"):
				fence = mark[:3]
			case !yield(i+1, text):
				return
			}
		}
	}
}

// follow says what is wrong with a link, if anything is. anchors keeps what is known of pages already.
func follow(root, page, target string, anchors map[string]map[string]bool) string {
	path, anchor, anchored := strings.Cut(target, "#")
	switch {
	case path == "":
		path = page
	case strings.HasPrefix(path, "/"):
		return "begins at the root of the site; write it relative to the page"
	default:
		path = filepath.Join(filepath.Dir(page), path)
	}
	if rel, err := filepath.Rel(root, path); err != nil || strings.HasPrefix(rel, "..") {
		return "leads out of the repository"
	}
	text, err := os.ReadFile(path)
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() && !anchored {
		return ""
	}
	switch {
	case err != nil:
		return fmt.Sprint("leads nowhere: ", err)
	case !anchored:
		return ""
	case filepath.Ext(path) != ".md":
		return "has an anchor, but only pages have headings"
	}
	if anchors[path] == nil {
		anchors[path] = headings(string(text))
	}
	if !anchors[path][anchor] {
		return "no heading of that page has this anchor"
	}
	return ""
}

var (
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linkInText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// headings are the anchors of a page's headings, as GitHub makes them: in lower case, with hyphens for spaces and
// without other signs; the second of the same name has -1 at its end.
func headings(markdown string) map[string]bool {
	all := map[string]bool{}
	for _, text := range prose(markdown) {
		m := heading.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linkInText.ReplaceAllString(m[1], "$1"))
		unique := anchor
		for n := 1; all[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}
		all[unique] = true
	}
	return all
}

func TestRelativeLinks(t *testing.T) {
	const page = "See [a](a.md), [b](b.md#part \"title\"), [far](https://example.org/x.md) and `[no](no.md)`.\n" +
		"```sh\n[no](no.md)\n```\n<img src=\"img/c.png\"> [d](#here)\n"
	assert.Equal(t, []link{{1, "a.md"}, {1, "b.md#part"}, {5, "img/c.png"}, {5, "#here"}}, relativeLinks(page))
}

func TestHeadings(t *testing.T) {
	const page = "# A title\n## push --once\n```sh\n# a comment\n```\n## `code_name` and [a link](x.md)\n### Is " +
		"it?\n### Is it?\n"
	assert.Equal(t, map[string]bool{
		"a-title": true, "push---once": true, "code_name-and-a-link": true, "is-it": true, "is-it-1": true,
	}, headings(page))
}

func TestFollow(t *testing.T) {
	root := t.TempDir()
	page := filepath.Join(root, "docs", "page.md")
	require.NoError(t, os.MkdirAll(filepath.Dir(page), 0o755))
	require.NoError(t, os.WriteFile(page, []byte("# Title\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.go"), nil, 0o644))
	for _, test := range []struct{ target, problem string }{
		{"page.md", ""},
		{"#title", ""},
		{"page.md#title", ""},
		{"..", ""},
		{"../main.go", ""},
		{"#nothing", "no heading"},
		{"page.md#Title", "no heading"},
		{"none.md", "leads nowhere"},
		{"../main.go#L1", "only pages have headings"},
		{"../docs#title", "leads nowhere"},
		{"../../x.md", "out of the repository"},
		{"/docs/page.md", "relative to the page"},
	} {
		problem := follow(root, page, test.target, map[string]map[string]bool{})
		if test.problem == "" {
			assert.Empty(t, problem, test.target)
		} else {
			assert.Contains(t, problem, test.problem, test.target)
		}
	}
}
