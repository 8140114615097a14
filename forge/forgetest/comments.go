package forgetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/forge"
)

// Conversations stand in for the comments on a code host's pull requests, as forge.Hub has them, for tests of what acts
// on them. The zero value has none.
type Conversations struct {
	// Fault fails the call that it is asked about: "comments", "reply" or "state". A reply still takes effect if
	// act is true: its answer is lost.
	Fault func(call string) (act bool, err error)
	Calls map[string]int // how often each was called

	mu       sync.Mutex
	comments map[string][]forge.Comment
	states   map[string]api.PullState
	made     int
}

func conversation(project api.ProjectID, number int) string { return fmt.Sprint(project, " ", number) }

// Say adds a comment, and gives it an ID if it has none. Without a time it appears a second after the one before.
func (c *Conversations) Say(project api.ProjectID, number int, x forge.Comment) forge.Comment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.say(conversation(project, number), x)
}

func (c *Conversations) say(where string, x forge.Comment) forge.Comment {
	c.made++
	x.ID = cmp.Or(x.ID, fmt.Sprintf("issue/%d", c.made))
	if list := c.comments[where]; x.At.IsZero() && len(list) > 0 {
		x.At = list[len(list)-1].At.Add(time.Second)
	} else if x.At.IsZero() {
		x.At = at
	}
	if c.comments == nil {
		c.comments = map[string][]forge.Comment{}
	}
	c.comments[where] = append(c.comments[where], x)
	return x
}

// Delete removes a comment.
func (c *Conversations) Delete(project api.ProjectID, number int, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	where := conversation(project, number)
	c.comments[where] = slices.DeleteFunc(c.comments[where], func(x forge.Comment) bool { return x.ID == id })
}

// End merges or closes a pull request, or opens it again.
func (c *Conversations) End(project api.ProjectID, number int, state api.PullState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states == nil {
		c.states = map[string]api.PullState{}
	}
	c.states[conversation(project, number)] = state
}

// Own are Docent's replies, oldest first.
func (c *Conversations) Own(project api.ProjectID, number int) []forge.Comment {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []forge.Comment
	for _, x := range c.comments[conversation(project, number)] {
		if x.Own {
			out = append(out, x)
		}
	}
	return out
}

// fault is asked with the lock held.
func (c *Conversations) fault(ctx context.Context, call string) (act bool, err error) {
	if c.Calls == nil {
		c.Calls = map[string]int{}
	}
	c.Calls[call]++
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if c.Fault == nil {
		return false, nil
	}
	return c.Fault(call)
}

// Comments is forge.Hub's.
func (c *Conversations) Comments(
	ctx context.Context, p api.Project, number int, since time.Time,
) ([]forge.Comment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.fault(ctx, "comments"); err != nil {
		return nil, err
	}
	var out []forge.Comment
	for _, x := range c.comments[conversation(p.ID, number)] {
		if !x.At.Before(since) {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b forge.Comment) int { return a.At.Compare(b.At) })
	return out, nil
}

// Reply is forge.Hub's.
func (c *Conversations) Reply(
	ctx context.Context, p api.Project, number int, to forge.Comment, key, body string,
) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	act, err := c.fault(ctx, "reply")
	if err != nil && !act {
		return err
	}
	where, mark := conversation(p.ID, number), "<!-- docent:"+key+" -->"
	for _, x := range c.comments[where] {
		if x.Own && strings.HasSuffix(x.Body, mark) {
			return err
		}
	}
	c.say(where, forge.Comment{Author: "docent", Own: true, MayWrite: true, Body: body + "\n\n" + mark,
		Path: to.Path, Line: to.Line, Old: to.Old, Thread: to.Thread})
	return err
}

// PullState is forge.Hub's.
func (c *Conversations) PullState(ctx context.Context, p api.Project, number int) (api.PullState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.fault(ctx, "state"); err != nil {
		return "", err
	}
	return cmp.Or(c.states[conversation(p.ID, number)], api.PullOpen), nil
}
