package console

import "testing"

func TestCellsOfListsAreLabeled(t *testing.T) {
	const page = `<table><tr><td>x</td><td>y</td></tr></table>` +
		`<table class="list why"><thead><tr><th scope="col">Name <b>x</b></th><th scope="col" class="num">A &amp; "b"</th><th><span class="visually-hidden">End</span></th></tr></thead>` +
		`<tbody><tr><th scope="row">n</th><td class="num">1</td><td><button>End</button></td></tr><tr><td>m</td><td></td></tr></tbody></table><td>z</td>`
	const want = `<table><tr><td>x</td><td>y</td></tr></table>` +
		`<table class="list why"><thead><tr><th scope="col">Name <b>x</b></th><th scope="col" class="num">A &amp; "b"</th><th><span class="visually-hidden">End</span></th></tr></thead>` +
		`<tbody><tr><th scope="row">n</th><td data-label="A &amp; &#34;b&#34;" class="num">1</td><td><button>End</button></td></tr><tr><td>m</td><td data-label="A &amp; &#34;b&#34;"></td></tr></tbody></table><td>z</td>`
	if got := labeled(page); got != want {
		t.Errorf("labeled as\n%s", got)
	}
}
