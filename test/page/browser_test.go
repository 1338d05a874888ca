package page

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// browser is a chromium with a profile of its own.
type browser struct {
	ctx  context.Context
	wait func() // until it has ended
}

// newBrowser starts one, which ends with ctx. It trusts any certificate: a test makes its own.
func newBrowser(ctx context.Context, profile string) (*browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	ctx, _ = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoSandbox, // for root, as whom a container's tests run
		chromedp.WindowSize(1280, 900),
		chromedp.IgnoreCertErrors,
	)...)
	allocator := chromedp.FromContext(ctx).Allocator
	ctx, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("starting chromium: %w", err)
	}
	return &browser{ctx, allocator.Wait}, nil
}

// startBrowser returns the browser of all tests; each opens tabs of its own.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	harness.Tool(t, "chromium")
	b, err := browsers()
	require.NoError(t, err)
	return b
}

// tab is a page in a browser, with what has happened there.
type tab struct {
	t      testing.TB
	ctx    context.Context
	origin string

	mu       sync.Mutex
	requests []string // their addresses
	problems []string // what the console has said, exceptions, dialogs
	forgiven string   // what is in those that are expected
}

// open opens an address. When the test ends, nothing must have gone wrong in the page, nor must it have asked anybody
// but its own server.
func (b *browser) open(t testing.TB, address string, before ...step) *tab {
	t.Helper()
	u := b.prepare(t, address, before...)
	t.Cleanup(func() {
		assert.Empty(t, u.wrong())
	})
	u.navigate(address)
	return u
}

// prepare makes an empty tab for an origin.
func (b *browser) prepare(t testing.TB, address string, before ...step) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	at, err := url.Parse(address)
	require.NoError(t, err)
	u := &tab{t: t, ctx: ctx, origin: at.Scheme + "://" + at.Host + "/"}
	require.NoError(t, chromedp.Listen(ctx, u.notice))
	u.do(command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}),
		command(cdppage.Enable, cdppage.EnableParams{}),
		// Each tab is as if it were the one in front: tests run beside one another.
		command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	u.do(before...)
	return u
}

// navigate opens an address, with the variables of a rank, which a job whose calls are measured has closed at first.
func (u *tab) navigate(address string) {
	u.t.Helper()
	u.do(chromedp.Navigate(address))
	u.script(`document.getElementById("variables-shown")?.setAttribute("open", "")`)
}

// step is something done in a tab.
type step = chromedp.Action[chromedp.Void]

// command is a command of the browser's protocol as a step.
func command[P, R any](what cdp.Command[P, R], params P) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, what, params)
		return chromedp.Void{}, err
	}
}

func (u *tab) do(steps ...step) {
	u.t.Helper()
	require.NoError(u.t, chromedp.Do(u.ctx, steps...))
}

// part is a subtest in the same tab.
func (u *tab) part(name string, test func(t *testing.T)) {
	whole := u.t.(*testing.T)
	defer func() { u.t = whole }()
	whole.Run(name, func(t *testing.T) {
		u.t = t
		test(t)
	})
}

// notice takes events.
func (u *tab) notice(event any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u.requests = append(u.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		u.requests = append(u.requests, e.URL)
	case *runtime.EventExceptionThrown:
		u.problems = append(u.problems, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		u.problems = append(u.problems, fmt.Sprintf("console: %s %v", e.Type, e.Args))
	case *log.EventEntryAdded:
		u.problems = append(u.problems, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *cdppage.EventJavascriptDialogOpening:
		u.problems = append(u.problems, "dialog: "+e.Message)
		go func() {
			_ = chromedp.Do(u.ctx, command(cdppage.HandleJavaScriptDialog,
				cdppage.HandleJavaScriptDialogParams{Accept: true}))
		}()
	}
}

// wrong lists what must not have happened.
func (u *tab) wrong() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(u.problems), func(p string) bool {
		return u.forgiven != "" && strings.Contains(p, u.forgiven)
	})
	for _, address := range u.requests {
		if !strings.HasPrefix(address, u.origin) {
			list = append(list, "a request to "+address)
		}
	}
	return list
}

// forgive is for problems that a test makes on purpose: those with this in them, of which there must be one. A browser
// may tell of more of them later.
func (u *tab) forgive(part string) {
	u.t.Helper()
	u.until(u.t, func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return slices.ContainsFunc(u.problems, func(p string) bool { return strings.Contains(p, part) })
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgiven = part
}

// until waits until something has come true in the tab.
func (u *tab) until(t testing.TB, such func() bool) {
	t.Helper()
	harness.Await(t, "what is to happen in the page", func(context.Context) error {
		if !such() {
			return fmt.Errorf("not yet; problems: %v", u.wrong())
		}
		return nil
	})
}

// asked counts the requests so far whose address has this in it.
func (u *tab) asked(part string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, address := range u.requests {
		if strings.Contains(address, part) {
			n++
		}
	}
	return n
}

// evaluate runs an expression in the page and returns what comes of it, or of its promise.
func evaluate[T any](u *tab, expression string) T {
	u.t.Helper()
	v, err := chromedp.Run(u.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(u.t, err, expression)
	return v
}

// script runs an expression in the page for what it does.
func (u *tab) script(expression string) {
	u.t.Helper()
	evaluate[bool](u, expression+"; true")
}

// await waits until an expression is true.
func (u *tab) await(expression string) {
	u.t.Helper()
	harness.Await(u.t, expression, func(context.Context) error {
		ok, err := chromedp.Run(u.ctx, chromedp.Evaluate[bool](expression))
		if err != nil {
			return err
		}
		if !ok {
			text, _ := chromedp.Run(u.ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 2000)"))
			return fmt.Errorf("it is not so on this page; problems: %v\n%s", u.wrong(), text)
		}
		return nil
	})
}

// key presses keys on the keyboard.
func (u *tab) key(keys string) {
	u.t.Helper()
	u.do(chromedp.KeyEvent(keys))
}

// theme emulates what a person prefers: light or dark.
func theme(name string) step {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}

// login answers questions for a password.
func (u *tab) login(name, password string) {
	u.t.Helper()
	require.NoError(u.t, chromedp.Listen(u.ctx, func(event any) {
		var answer step
		switch e := event.(type) {
		case *fetch.EventRequestPaused:
			answer = command(fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
		case *fetch.EventAuthRequired:
			answer = command(fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{
				RequestID: e.RequestID,
				AuthChallengeResponse: &fetch.AuthChallengeResponse{
					Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: name,
					Password: password,
				},
			})
		default:
			return
		}
		go func() { _ = chromedp.Do(u.ctx, answer) }()
	}))
	u.do(command(fetch.Enable, fetch.EnableParams{HandleAuthRequests: ptr(true)}))
}

func ptr[T any](v T) *T { return &v }

// row is a series as the page shows it.
type row struct {
	Name, Class, Metric string
	Labels              map[string]string
	Value, Sum, Text    string
}

// rows reads the table of variables.
func (u *tab) rows() []row {
	u.t.Helper()
	return evaluate[[]row](u, `[...document.querySelectorAll("#values tbody")].flatMap((body) => {
		const text = (selector) => body.querySelector(selector)?.textContent ?? "";
		return [...body.querySelectorAll("tr.series")].map((row) => ({
			name: text(".name"), class: text(".class"), metric: text(".metric"),
			labels: Object.fromEntries([...row.querySelectorAll(".of div")].map((d) => [d.firstChild.textContent.trim(), d.lastChild.textContent])),
			value: row.querySelector("data.value")?.value ?? "", sum: row.querySelector("data.sum")?.value ?? "",
			text: row.innerText,
		}));
	})`)
}
