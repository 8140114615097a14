// Package tables bounds the tables of HTML pages, which a converter to Markdown fills up to a grid: a table of 60 bytes
// may say that it is a million columns wide.
package tables

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxSpan    = 1000    // columns or rows of one cell, as browsers have it
	maxColumns = 1000    // of a table
	maxCells   = 200_000 // of the grids of all tables of a page
)

// Bound takes spans back to what browsers show, and makes blocks of text of the tables whose grids are too large.
func Bound(top *html.Node) {
	left := maxCells
	var found []*html.Node
	if top.DataAtom == atom.Table {
		found = append(found, top)
	}
	for n := range top.Descendants() {
		if n.DataAtom == atom.Table {
			found = append(found, n)
		}
	}
	for _, t := range found {
		if cells := grid(t); cells <= left {
			left -= cells
		} else {
			blocks(t)
		}
	}
}

// parts are the elements that a table is made of, without those of tables within it.
func parts(table *html.Node, do func(*html.Node)) {
	for n := table.FirstChild; n != nil; n = next(n, table) {
		if n.Type == html.ElementNode {
			do(n)
		}
	}
}

// next is the node after n in the order of the document, below top and in no table but that one.
func next(n, top *html.Node) *html.Node {
	if n.FirstChild != nil && n.DataAtom != atom.Table {
		return n.FirstChild
	}
	for n != top {
		if n.NextSibling != nil {
			return n.NextSibling
		}
		n = n.Parent
	}
	return nil
}

// grid is how many cells a table has once it is filled up; more than any page may have if it is too wide.
func grid(table *html.Node) int {
	rows := 0
	parts(table, func(n *html.Node) {
		if n.DataAtom == atom.Tr {
			rows++
		}
	})
	wider := make([]int, rows+2) // by how much a row is wider than the one before it, for the cells that reach into it
	row := 0
	parts(table, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Tr:
			row++
		case atom.Td, atom.Th:
			at := max(row, 1)
			columns := span(n, "colspan", maxSpan)
			end := at + span(n, "rowspan", min(maxSpan, max(1, rows-at+1)))
			wider[min(at, rows+1)] += columns
			wider[min(end, rows+1)] -= columns
		}
	})
	columns, width := 0, 0
	for _, by := range wider {
		width += by
		columns = max(columns, width)
	}
	if columns > maxColumns {
		return maxCells + 1
	}
	return max(rows, 1) * columns
}

// span is what an attribute says of a cell, which is taken back to what is possible.
func span(cell *html.Node, key string, most int) int {
	for i, a := range cell.Attr {
		if a.Key != key {
			continue
		}
		digits := strings.TrimSpace(a.Val)
		n, err := strconv.Atoi(digits)
		if err != nil && len(digits) > 9 && strings.Trim(digits, "0123456789") == "" {
			n = most
		}
		n = min(max(n, 1), most)
		cell.Attr[i].Val = strconv.Itoa(n)
		return n
	}
	return 1
}

// blocks makes a table a part of the page like any other.
func blocks(table *html.Node) {
	block := func(n *html.Node) { n.Data, n.DataAtom = "div", atom.Div }
	parts(table, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Td, atom.Th, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption:
			block(n)
		}
	})
	block(table)
}
