package forge_test

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// together looks for the tips of branches, all of which wait behind somebody who has the repository's turn until held
// is closed; meanwhile is done when all of them wait.
func together(t *testing.T, r *rig, branches []string, meanwhile func(), held chan struct{}) map[string]forge.Tip {
	t.Helper()
	var (
		mu   sync.Mutex
		tips = map[string]forge.Tip{}
		all  sync.WaitGroup
	)
	for _, branch := range branches {
		all.Go(func() {
			tip, err := r.Tip(t.Context(), r.project, branch)
			if err != nil {
				t.Errorf("tip of %s: %v", branch, err)
			}
			mu.Lock()
			defer mu.Unlock()
			tips[branch] = tip
		})
	}
	for forge.Waiting(r.Hub, r.project.ID) < len(branches) {
		runtime.Gosched()
	}
	meanwhile()
	close(held)
	all.Wait()
	return tips
}

var waiting = []string{"docent/job_1", "docent/job_2", "docent/job_3", "docent/job_4", "docent/job_5", "docent/job_6",
	"docent/job_7", "docent/job_8"}

// Jobs that wait for one repository ask the code host once for all of them; none learns of a state from before it
// asked.
func TestJobsThatWaitShareAListing(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		first := r.tip(t, "docent/first")
		var listings atomic.Int32
		entered, held := make(chan struct{}), make(chan struct{})
		s.Do(func() {
			s.Seen = func(req *http.Request) {
				if lists(req) && listings.Add(1) == 1 {
					close(entered)
					<-held
				}
			}
		})
		ahead := make(chan error, 1)
		go func() {
			_, err := r.Tip(t.Context(), r.project, "docent/first")
			ahead <- err
		}()
		<-entered
		s.Git(t, "branch", "docent/job_3", first.Commit)
		tips := together(t, r, waiting, func() {
			s.Push(t, "main", "news.md", "# News\n")
			s.Push(t, "docent/job_3", "theirs.md", "# By hand\n")
		}, held)
		if err := <-ahead; err != nil {
			t.Fatal(err)
		}
		for branch, tip := range tips {
			want := "main"
			if branch == "docent/job_3" {
				want = branch
			}
			if newest := s.Commits(t, want)[0]; tip.Commit != newest {
				t.Errorf("%s stands at %s, want %s", branch, tip.Commit, newest)
			}
		}
		// The one ahead, as it fetches what is new; that one is new enough for all that waited; and one to fetch what
		// somebody else has pushed to a branch.
		if n := listings.Load(); n != 3 {
			t.Errorf("the host was asked %d times where its branches stand", n)
		}
		// Nothing of that is believed later.
		s.Push(t, "main", "later.md", "# Later\n")
		if tip := r.tip(t, "docent/job_1"); tip.Commit != s.Commits(t, "main")[0] {
			t.Errorf("a job that came later stands at %s", tip.Commit)
		}
		if n := listings.Load(); n != 5 {
			t.Errorf("a tip and its base, which was to be fetched, were asked for %d times", n-3)
		}
		r.tip(t, "docent/job_1")
		if n := listings.Load(); n != 6 {
			t.Errorf("a tip and its base, which were there, were asked for %d times", n-5)
		}
	})
}

// lists reports whether a request asks for the heads of the branches, by either version of the protocol.
func lists(req *http.Request) bool {
	if req.Header.Get("Git-Protocol") != "" {
		return req.Method == http.MethodPost
	}
	return strings.HasSuffix(req.URL.Path, "/info/refs")
}

// A host is asked for its branches alone if it speaks the protocol's second version; one that does not, or that has
// trouble with it, is served as well.
func TestBranchesAreListedByEitherVersion(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *forgetest.StandIn)
		first  bool // the first version lists
	}{
		"the second version": {change: func(*forgetest.StandIn) {}},
		"the first version":  {change: func(s *forgetest.StandIn) { s.OldGit = true }, first: true},
		"a proxy that refuses what it does not know": {change: func(s *forgetest.StandIn) {
			s.Fault = func(req *http.Request) (f forgetest.Fault) {
				if req.Header.Get("Git-Protocol") != "" {
					f = forgetest.Fault{Status: http.StatusBadRequest, Body: "{}"}
				}
				return f
			}
		}, first: true},
		"answers that are cut off": {change: func(s *forgetest.StandIn) {
			s.Fault = func(req *http.Request) (f forgetest.Fault) {
				if req.Header.Get("Git-Protocol") != "" && req.Method == http.MethodPost {
					f = forgetest.Fault{Status: http.StatusOK, Body: "003d"}
				}
				return f
			}
		}, first: true},
		"answers that end before their end": {change: func(s *forgetest.StandIn) {
			s.Fault = func(req *http.Request) (f forgetest.Fault) {
				if req.Header.Get("Git-Protocol") != "" && req.Method == http.MethodPost {
					f = forgetest.Fault{Status: http.StatusOK, Body: "003d1111111111111111111111111111111111111111 refs/heads/main\n"}
				}
				return f
			}
		}, first: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := standIn(t, api.HostGitea)
			s.Do(func() { c.change(s) })
			r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
			first := r.tip(t, "docent/job_1")
			s.Git(t, "update-ref", "refs/pull/1/head", first.Commit)
			var one, two atomic.Int32
			s.Do(func() {
				s.Seen = func(req *http.Request) {
					switch {
					case !lists(req):
					case req.Header.Get("Git-Protocol") != "":
						two.Add(1)
					default:
						one.Add(1)
					}
				}
			})
			if again := r.tip(t, "docent/job_1"); again != first {
				t.Errorf("the tip is %+v, and was %+v", again, first)
			}
			if (one.Load() > 0) != c.first || !c.first && two.Load() != 1 {
				t.Errorf("listed %d times by the first version and %d times by the second", one.Load(), two.Load())
			}
			s.Push(t, "main", "news.md", "# News\n")
			tip := r.tip(t, "docent/job_1")
			if tip.Commit != s.Commits(t, "main")[0] || r.files(t, tip.Commit)["news.md"] != "# News\n" {
				t.Errorf("what is new is not there: %+v", tip)
			}
			done := r.publish(t, "docent/job_1", put("a.md", "# A\n"))
			if tip := r.tip(t, "docent/job_1"); tip.Commit != done.Commit || tip.Pull != api.PullOpen {
				t.Errorf("the branch stands at %+v, published was %s", tip, done.Commit)
			}
		})
	}
}

// What a job pushed is part of what those who wait are told, and a push that failed makes them ask again.
func TestAListingKnowsWhatWasPushed(t *testing.T) {
	s, p := standIn(t, api.HostGitea)
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
	done := r.publish(t, "docent/job_1", put("a.md", "# A\n"))
	if tip := r.tip(t, "docent/job_1"); tip.Commit != done.Commit {
		t.Errorf("the branch stands at %s, published was %s", tip.Commit, done.Commit)
	}
	// Pushed by us, while others wait who have asked before: the branch that is documented, directly.
	r.project.Direct = true
	entered, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Do(func() {
		s.Seen = func(req *http.Request) {
			if strings.HasSuffix(req.URL.Path, "/git-receive-pack") && req.Method == http.MethodPost {
				once.Do(func() {
					close(entered)
					<-held
				})
			}
		}
	})
	pub := forgetest.Publication(r.project, r.tip(t, "docent/job_9"), "")
	pub.Changes = []forge.Change{put("direct.md", "# Direct\n")}
	published := make(chan error, 1)
	go func() {
		_, err := r.Publish(t.Context(), pub)
		published <- err
	}()
	<-entered
	tips := together(t, r, waiting[1:], func() {}, held)
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	for branch, tip := range tips {
		if newest := s.Commits(t, "main")[0]; tip.Commit != newest {
			t.Errorf("%s starts from %s; the base stands at %s", branch, tip.Commit, newest)
		}
	}
}

// Jobs that wait for one folder read it once for all of them.
func TestJobsThatWaitShareAnImport(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n"})
	var imports atomic.Int32
	entered, held := make(chan struct{}), make(chan struct{})
	o := forge.Failing(quick, func(step string) error {
		if step == "import written" && imports.Add(1) == 2 {
			close(entered)
			<-held
		}
		return nil
	})
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, o)
	r.tip(t, "docent/first")
	write(t, folder, map[string]string{"index.md": "# Home, sweet home\n"})
	ahead := make(chan error, 1)
	go func() {
		_, err := r.Tip(t.Context(), r.project, "docent/first")
		ahead <- err
	}()
	<-entered
	tips := together(t, r, waiting, func() {
		write(t, folder, map[string]string{"news.md": "# News\n"})
	}, held)
	if err := <-ahead; err != nil {
		t.Fatal(err)
	}
	for branch, tip := range tips {
		if files := r.files(t, tip.Commit); files["news.md"] != "# News\n" {
			t.Errorf("%s does not have what was written before it began: %v", branch, files)
		}
	}
	if n := imports.Load(); n != 3 {
		t.Errorf("%d imports", n)
	}
}
