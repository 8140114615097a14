package stream

import "unicode/utf8"

// run writes the events of a run of AG-UI: the text as one message, the search as a tool call that the server has made,
// and the pages for clients that show them as cards. Its ids are the client's; the thread's is in the result.
func (e *Encoder) run(dst []byte, p *Part) []byte {
	c := e.completion
	switch p.Kind {
	case Start:
		e.remember(p)
		e.message = p.Message
		dst = append(c.ids(append(dst, `data: {"type":"RUN_STARTED"`...)), "}\n\n"...)
	case Source:
		c.listing.add(p)
	case Search:
		dst = e.endMessage(dst)
		call := e.message + "-" + e.callID(p)
		for _, kind := range [...]string{"START", "ARGS", "END", "RESULT"} {
			dst = append(append(dst, `data: {"type":"TOOL_CALL_`...), kind...)
			dst = appendString(append(dst, `","toolCallId":`...), call)
			switch kind {
			case "START":
				dst = append(dst, `,"toolCallName":"search"`...)
			case "ARGS":
				query := append(appendString([]byte(`{"query":`), p.Query), '}')
				dst = appendString(append(dst, `,"delta":`...), string(query))
			case "RESULT":
				dst = appendString(append(dst, `,"messageId":`...), call+"-result")
				dst = appendString(append(dst, `,"role":"tool","content":`...), string(appendResults(nil, p.Results)))
			}
			dst = append(dst, "}\n\n"...)
		}
	case Text:
		if p.Text != "" {
			c.length += utf8.RuneCountInString(p.Text)
			dst = e.say(dst, p.Text)
		}
	case Finish:
		e.remember(p)
		if text, _ := c.listing.write(c.length); text != "" {
			dst = e.say(dst, text)
		}
		dst = e.endMessage(dst)
		dst = c.sources(dst)
		dst = c.ids(append(dst, `data: {"type":"RUN_FINISHED"`...))
		dst = appendString(append(dst, `,"result":{"messageId":`...), e.message)
		dst = append(e.ids(dst, true), "}}\n\n"...)
		e.ended = true
	case Error:
		dst = e.endMessage(dst)
		dst = appendString(append(dst, `data: {"type":"RUN_ERROR","code":"no_answer","message":`...), p.Text)
		dst = append(dst, "}\n\n"...)
		e.ended = true
	}
	return dst
}

// ids are the thread and the run as the client calls them.
func (c *completion) ids(dst []byte) []byte {
	dst = appendString(append(dst, `,"threadId":`...), c.Thread)
	return appendString(append(dst, `,"runId":`...), c.Run)
}

// say writes text, in a message that it opens unless one is open.
func (e *Encoder) say(dst []byte, text string) []byte {
	if !e.text {
		e.text = true
		e.delta = appendString([]byte(`,"messageId":`), e.message)
		dst = append(append(append(dst, `data: {"type":"TEXT_MESSAGE_START"`...), e.delta...), ",\"role\":\"assistant\"}\n\n"...)
	}
	dst = append(append(dst, `data: {"type":"TEXT_MESSAGE_CONTENT"`...), e.delta...)
	return append(appendString(append(dst, `,"delta":`...), text), "}\n\n"...)
}

func (e *Encoder) endMessage(dst []byte) []byte {
	if !e.text {
		return dst
	}
	e.text = false
	return append(append(append(dst, `data: {"type":"TEXT_MESSAGE_END"`...), e.delta...), "}\n\n"...)
}

// sources are the pages of the answer as an event of our own, which clients that do not know it pass over.
func (c *completion) sources(dst []byte) []byte {
	if len(c.listing.cited)+len(c.listing.further) == 0 {
		return dst
	}
	dst = append(dst, `data: {"type":"CUSTOM","name":"sources","value":[`...)
	first := true
	for _, list := range [...][]Part{c.listing.cited, c.listing.further} {
		for i := range list {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendString(append(dst, `{"url":`...), list[i].URL)
			dst = appendString(append(dst, `,"title":`...), list[i].Title)
			if list[i].Excerpt != "" {
				dst = appendString(append(dst, `,"excerpt":`...), list[i].Excerpt)
			}
			dst = append(dst, '}')
		}
	}
	return append(dst, "]}\n\n"...)
}
