package analysis

import "strings"

// Compounds are written open, hyphenated, or closed: "back up", "back-up", "backup". A text that has one open or
// hyphenated also has it closed, so that each form finds the others. In the list, a verb stands for all its forms; where
// one of them means something else ("the logs in the console"), those that are meant stand behind a colon.
const compoundList = `
back up
boot up
break down
break through
build up
call back
carry over
catch up
change over
check out
clean up
count down
cut off
cut over
drill down
drop down: drop
drop out: drop
fail over
fall back
fan in: fan
fan out
feed back
follow up
hand off
hand over
hang up
lay out: lay
lock down
lock out
log in: log logged
log off: log logged
log on: log logged
log out: log logged logging
look up
mark down: mark
mark up: mark
opt in
opt out
pass through
pick up
play back
plug in: plug
pop up
push back
ramp up
read out
roll back
roll out
roll up
set up
shut down
sign in
sign off
sign on
sign out
sign up
slow down
speed up
spin up
start up
switch over
sym link
take over
tear down
time out: time times timed timing
trade off
wake up
walk through
warm up
work around
write back
auto complete
auto mount
auto save
auto scale
auto start
auto update
back end: back
back ground: back
back log: back
back port: back
back slash: back
back trace: back
band width
base line
black list
block list
allow list: allow
deny list: deny
white list
boiler plate
book mark
bread crumb
break point
change log: change
check box
check list
check point
check sum
class path
code base
cook book
data base
data center
data set: data
data source
data store: data
data type
dead line
dead lock
down load
down stream
down time
drop box
end point
entry point
file name
file path
file system
file type
fire wall
front end
full screen
gate way
half life
hand book
hard ware
head less
heat map
home page
host name
hot fix
hot key
hyper link
key board
key chain
key ring
key space
key store
key word
life cycle
life time
line feed
lock file
log file
make file
middle ware
mount point
name server
name space
note book
off line
on line
over head
over load
over ride
over view
over write
pass code
pass key
pass phrase
pass word
path name
pay load
perma link
pipe line
place holder
play book
play ground
read me
road map
run book
run time
sand box
screen shot
scroll bar
short cut
side bar
side car
site map
snap shot
soft ware
stack trace
sub class
sub command
sub domain
sub folder
sub module
sub net
sub system
text area
text box
thread pool
through put
time frame
time line
time span
time stamp
time zone
tool bar
tool box
tool chain
tool kit
tool tip
trouble shoot
up load
up stream
up time
user name
view port
wall clock
water mark
way point
web hook
web page
web site
web socket
white space
wild card
word wrap
work book
work flow
work group
work load
work sheet
work space
work station
`

// compounds are the closed forms by their second word, then by their first.
var compounds = func() map[string]map[string]string {
	all := make(map[string]map[string]string)
	add := func(first, second, closed string) {
		if all[second] == nil {
			all[second] = make(map[string]string)
		}
		all[second][first] = closed
	}
	for line := range strings.Lines(compoundList) {
		line, only, explicit := strings.Cut(strings.TrimSpace(line), ":")
		first, second, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		for _, ending := range []string{"", "s", "d", "r", "ing"} { // of the second: "web hooks", "auto scaling"
			closed := first + second + ending
			if ending == "ing" {
				closed = first + strings.TrimSuffix(second, "e") + ending
			}
			if explicit {
				for form := range strings.FieldsSeq(only) {
					add(form, closed[len(first):], closed)
				}
				continue
			}
			for _, form := range forms(first) {
				add(form, closed[len(first):], closed)
			}
		}
	}
	return all
}()

// forms are a verb with its endings, as English may spell them.
func forms(verb string) []string {
	last := verb[len(verb)-1:]
	return []string{verb, verb + "s", verb + "es", verb + "d", verb + "ed", verb + "ing", verb + last + "ed", verb + last + "ing",
		strings.TrimSuffix(verb, "e") + "ing"}
}

// Compound is the closed form of a word that is written as two; empty if these make none.
func Compound(first, second string) string {
	if len(second) < 2 {
		return ""
	}
	firsts := compounds[Fold(second)]
	if firsts == nil {
		return ""
	}
	return firsts[Fold(first)]
}

// pronouns may stand within a compound: "back it up".
var pronouns, things = setOf(`it this that them these me us you everything myself yourself`), setOf(`it this that these everything`)

// Parted is the closed form of a verb and its particle with a pronoun between them, if there is one. Somebody is logged in;
// "log it in" goes on.
func Parted(first, pronoun, second string) string {
	if pronoun != "" && !pronouns[pronoun] || second == "in" && things[pronoun] {
		return ""
	}
	return Compound(first, second)
}

// prefixes may stand before a hyphen or be a part of the word: "re-index" and "reindex".
var prefixes = setOf("auto co e inter meta micro multi non over pre re sub super un under")

// Hyphenated is the closed form of a word with one hyphen; empty if it is not known to have one.
func Hyphenated(first, second string) string {
	if prefixes[first] {
		return first + second
	}
	return Compound(first, second)
}
