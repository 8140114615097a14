package remote

import (
	"cmp"
	"encoding/base64"
	"slices"

	"docent/model"
)

// Sees reports whether the model reads pictures: by the table of known models, unless the endpoint has refused one.
func (r *Model) Sees() bool { return r.known.sees && !r.manners.now().blind }

// unseen stands for a picture at an endpoint that takes none.
const unseen = "\n\n(The picture was left out: this model's endpoint takes none.)"

// result is what a turn of a tool's says, and its picture if the endpoint takes such.
func (m *manners) result(t *model.Turn) (string, *model.Picture) {
	text := cmp.Or(t.Text, nothing) // which a provider would miss
	switch {
	case t.Picture == nil || len(t.Picture.Data) == 0:
		return text, nil
	case m.blind:
		return text + unseen, nil
	}
	return text, t.Picture
}

// refusesPictures reports whether a refusal of a conversation with pictures is about these.
func refusesPictures(text string, c *model.Chat) bool {
	return holds(text, "image", "picture", "vision", "multimodal", "modalit") &&
		slices.ContainsFunc(c.Turns, func(t model.Turn) bool { return t.Picture != nil })
}

func dataURL(p *model.Picture) string {
	return "data:" + p.Media + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}
