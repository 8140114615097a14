package git

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/failure"
)

// Git's objects in the little that is needed of them, read strictly: what does not follow the form is damage.

// An Object is one that is to be written. Its content is data.
type Object struct {
	Hash plumbing.Hash
	kind plumbing.ObjectType
	data []byte
}

func newObject(kind plumbing.ObjectType, data []byte) Object {
	return Object{kind: kind, Hash: hashObject(kind, data), data: data}
}

// NewBlob is a file's content.
func NewBlob(content []byte) Object { return newObject(plumbing.BlobObject, content) }

// NewTree is a folder. The entries are sorted in place.
func NewTree(entries []Entry) Object { return newObject(plumbing.TreeObject, encodeTree(entries)) }

// NewCommit is the same for the same values, always. Who is a name and an address.
func NewCommit(tree plumbing.Hash, parents []plumbing.Hash, who string, when time.Time, message string) Object {
	return newObject(plumbing.CommitObject, encodeCommit(tree, parents, who, when, message))
}

// hashObject names content as git does. The hash is a name here, not a proof against forgers: all content comes from
// the operator's own sources.
func hashObject(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	h := sha1.New()
	h.Write(objectHeader(kind, int64(len(data))))
	h.Write(data)
	return plumbing.Hash(h.Sum(nil))
}

// names are the objects that an object names.
func (o Object) names() []plumbing.Hash {
	switch o.kind {
	case plumbing.TreeObject:
		entries, _ := decodeTree(o.data) // one that does not follow the form names none
		list := make([]plumbing.Hash, len(entries))
		for i, e := range entries {
			list[i] = e.Hash
		}
		return list
	case plumbing.CommitObject:
		c, err := decodeCommit(o.Hash, o.data)
		if err == nil {
			return append(c.Parents, c.Tree)
		}
	}
	return nil
}

func objectHeader(kind plumbing.ObjectType, size int64) []byte {
	return append(strconv.AppendInt(append(kind.Bytes(), ' '), size, 10), 0)
}

// An Entry is one line of a tree.
type Entry struct {
	Name string
	Mode filemode.FileMode
	Hash plumbing.Hash
}

// IsDir reports whether the entry is a folder, IsFile whether it is a file: a link or a submodule is neither.
func (e Entry) IsDir() bool  { return e.Mode == filemode.Dir }
func (e Entry) IsFile() bool { return e.Mode.IsFile() && e.Mode != filemode.Symlink }

// order is git's: a directory sorts as if its name ended in a slash.
func (e Entry) order() string {
	if e.IsDir() {
		return e.Name + "/"
	}
	return e.Name
}

func encodeTree(entries []Entry) []byte {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.order(), b.order()) })
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%o %s\x00", uint32(e.Mode), e.Name)
		b.Write(e.Hash[:])
	}
	return b.Bytes()
}

var errMalformed = errors.New("malformed object")

func decodeTree(data []byte) ([]Entry, error) {
	var out []Entry
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 1 || space > 7 {
			return nil, errMalformed
		}
		mode, err := filemode.New(string(data[:space]))
		if err != nil {
			return nil, errMalformed
		}
		zero := bytes.IndexByte(data, 0)
		if zero < space+2 || len(data) < zero+21 {
			return nil, errMalformed
		}
		out = append(out, Entry{Name: string(data[space+1 : zero]), Mode: mode, Hash: plumbing.Hash(data[zero+1 : zero+21])})
		data = data[zero+21:]
	}
	return out, nil
}

// A Commit is what is needed of one.
type Commit struct {
	Hash    plumbing.Hash
	Tree    plumbing.Hash
	Parents []plumbing.Hash
	Author  string // name and address
	When    time.Time
	Message string
}

// Subject is the first line of the message.
func (c Commit) Subject() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return line
}

func decodeCommit(hash plumbing.Hash, data []byte) (Commit, error) {
	c := Commit{Hash: hash}
	for {
		line, rest, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			break
		}
		data = rest
		if len(line) == 0 {
			break
		}
		key, value, _ := strings.Cut(string(line), " ")
		switch key {
		case "tree":
			c.Tree = plumbing.NewHash(value)
		case "parent":
			c.Parents = append(c.Parents, plumbing.NewHash(value))
		case "author":
			c.Author, _ = signature(value)
		case "committer":
			_, c.When = signature(value)
		}
	}
	if c.Tree.IsZero() {
		return Commit{}, errMalformed
	}
	c.Message = string(data)
	return c, nil
}

func signature(s string) (who string, when time.Time) {
	end := strings.LastIndexByte(s, '>')
	if end < 0 {
		return s, time.Time{}
	}
	fields := strings.Fields(s[end+1:])
	if len(fields) == 0 {
		return s[:end+1], time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return s[:end+1], time.Time{}
	}
	return s[:end+1], time.Unix(seconds, 0).UTC()
}

// encodeCommit is the same bytes for the same values, always.
func encodeCommit(tree plumbing.Hash, parents []plumbing.Hash, who string, when time.Time, message string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s %d +0000\n\n", who, when.Unix(), who, when.Unix())
	b.WriteString(strings.TrimRight(failure.Text(message), "\n"))
	b.WriteByte('\n')
	return b.Bytes()
}
