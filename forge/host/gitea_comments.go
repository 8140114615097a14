package host

import (
	"context"
	"time"

	"docent/forge/failure"
)

func (g *gitea) Comments(context.Context, int, time.Time) ([]Comment, error) {
	return nil, failure.Misconfigured("Comments on pull requests of %s are not read yet.", g.c.name)
}

func (g *gitea) Reply(context.Context, int, Comment, string, string) error {
	return failure.Misconfigured("Comments on pull requests of %s are not answered yet.", g.c.name)
}
