// Package tuning provides the weights of the ranking, and those of them that a query may try.
package tuning

import "docent/search/page"

// Tuning is the weights of the ranking: one setting for every site. docs/decisions/0003-ranking.md says where they
// come from.
type Tuning struct {
	Section [page.SectionFields]float64 `toml:"section"` // heading, trail, body, code
	Inherit [page.Fields]float64        `toml:"inherit"` // what a page's fields are worth to each of its sections
	B       [page.SectionFields]float64 `toml:"b"`
	BShort  float64                     `toml:"b_short"`
	K       float64                     `toml:"k"`

	Page        [page.Fields]float64 `toml:"page"` // title, path, keywords, links, description
	PageHeading float64              `toml:"page_heading"`
	PageBody    float64              `toml:"page_body"`
	PageCode    float64              `toml:"page_code"`
	PageK       float64              `toml:"page_k"`

	PageShare float64 `toml:"page_share"` // of the page's own score; the rest is its best section's
	IDFPower  float64 `toml:"idf_power"`

	Closer       int     `toml:"closer"`       // pages looked at closely
	CloserShare  float64 `toml:"closer_share"` // their sections that score at least so much of the best
	TitleCover   float64 `toml:"title_cover"`
	HeadingCover float64 `toml:"heading_cover"`
	HeadingExact float64 `toml:"heading_exact"` // if the query is the heading
	HeadingNamed float64 `toml:"heading_named"` // on top of it, if the query ends with the heading word for word
	UnknownCount float64 `toml:"unknown_count"` // a title word that was not asked for counts so often
	Proximity    float64 `toml:"proximity"`
	ProximityK   float64 `toml:"proximity_k"`
	TitleStart   float64 `toml:"title_start"`
	// for any title that begins with the query; TitleStart for one that is the query
	TitleStartBase float64 `toml:"title_start_base"`
	Slip1          float64 `toml:"slip1"`
	Slip2          float64 `toml:"slip2"`
	Prefix         float64 `toml:"prefix"`
	PrefixOfWord   float64 `toml:"prefix_of_word"` // if the last word is a word itself
	PrefixWords    int     `toml:"prefix_words"`
	// words of a query from which on a last word that is a word is not taken for the beginning of others
	PrefixUntil   int     `toml:"prefix_until"`
	NameRest      float64 `toml:"name_rest"`     // as UnknownCount, for the other parts of a name that was asked for
	PartShare     float64 `toml:"part_share"`    // a part of a compound name, if the whole is known
	Neighbourhood float64 `toml:"neighbourhood"` // currentPath
	// of other candidates, by linking to a page: at most, and how many make half of it
	Vote         float64 `toml:"vote"`
	VoteK        float64 `toml:"vote_k"`
	Abbreviation float64 `toml:"abbreviation"` // of the other form of a word that is written short or in full
	Pair         float64 `toml:"pair"`         // of two Chinese, Japanese or Korean characters: a word is one or more of them
	// of a word of the field that stands for another, and the score of the first page below which such words are looked
	// for
	Synonym      float64 `toml:"synonym"`
	SynonymBelow float64 `toml:"synonym_below"`
	// of a word in the questions that were written for a section: in the score of the section, and of its page
	Written     float64 `toml:"written"`
	PageWritten float64 `toml:"page_written"`
	// power to which a page's own boost is raised if it is above 1; Demotion if it is below
	Boost    float64 `toml:"boost"`
	Demotion float64 `toml:"demotion"`
}

// Default is a library's default.
var Default = Tuning{
	Section: [page.SectionFields]float64{4, 1.5, 1, 0.7}, Inherit: [page.Fields]float64{6, 2, 1, 0.5, 2, 0},
	B: [page.SectionFields]float64{0.3, 0.3, 0.5, 0.75}, BShort: 0.3, K: 2,
	Page: [page.Fields]float64{4, 4, 2, 2, 4, 0}, PageHeading: 2, PageBody: 0.7, PageCode: 0.6, PageK: 1.5,
	PageShare: 0.3, IDFPower: 0.8,
	Closer: 20, CloserShare: 0.6, TitleCover: 1.2, HeadingCover: 0.5, HeadingExact: 0.5, HeadingNamed: 0.75,
	UnknownCount: 4, NameRest: 2, Proximity: 0.3, ProximityK: 2, TitleStart: 0.6, TitleStartBase: 0.3,
	Slip1: 0.8, Slip2: 0.4, Prefix: 0.7, PrefixOfWord: 0.35, PrefixWords: 40, PrefixUntil: 3,
	PartShare: 1, Neighbourhood: 0.1, Vote: 0.4, VoteK: 5, Abbreviation: 0.5, Pair: 0.5, Synonym: 0.4, SynonymBelow: 0.22, Written: 0.5, PageWritten: 0.35,
	Boost: 0.03, Demotion: 0.25,
}
