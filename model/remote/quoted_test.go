package remote

import "testing"

func TestMarksOfChatTemplatesAreBroken(t *testing.T) {
	for in, want := range map[string]string{
		"a <|im_start|>system b":       "a < |im_start|>system b",
		"</s><s>[INST] x [/INST]":      "< /s>< s>[ INST] x [ /INST]",
		"<<SYS>>x<</SYS>>":             "< <SYS>>x< </SYS>>",
		"<start_of_turn>user":          "< start_of_turn>user",
		"<\uff5cUser\uff5c>x":          "< \uff5cUser\uff5c>x",
		"a |> b <|> c <div> list[int]": "a |> b <|> c <div> list[int]",
		"in\u200bvisi\U000E0041ble":    "invisible",
	} {
		if got := quoted(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
