package analysis

import "strings"

// Words of the field that stand for each other, one group a line. A question has one, the page that answers it another.
const alike = `
delete remove erase purge drop destroy discard wipe clear
deletion delete removal
create make add new generate
change modify edit update alter adjust customize
customise customize
start launch boot run begin
startup start
stop end terminate kill shutdown halt quit
cancel abort interrupt stop
restart reload reboot
pause suspend wait sleep
resume continue
retry again repeat
disable off deactivate suppress
enable on activate
install setup installation
uninstall remove
upgrade update migrate migration
migrate move convert migration
deploy publish release ship rollout host deployment
hosting deploy deployment host
download fetch pull get retrieve
upload push send
send push post submit ship emit
receive get accept
read load
save store persist write keep
storage store save disk
keep retain retention preserve
retention keep expire age
expire expiry expiration ttl timeout
old stale outdated
backup restore recovery snapshot
recover recovery restore
restore recover
show display view render print
hide mask redact conceal
mask hide redact
find search lookup query locate
search find query
list enumerate show
check verify validate test
verify check validate validation
validate validation check schema
inspect debug examine
debug troubleshoot diagnose inspect
debugging debug troubleshoot
fix resolve repair solve
repair fix
troubleshoot debug problem
error exception failure fail problem
exception error
fail error failure crash
crash fail failure panic
broken fail error
problem issue error trouble
warning alert
limit restrict quota maximum throttle cap
throttle limit rate
throttling limit rate
quota limit
restrict limit deny
allow permit enable grant
permit allow permission
permission access role authorization rbac right
role permission rbac
authorization permission access policy
deny reject block forbid refuse
block deny reject prevent
prevent avoid block protect
forbid deny block
reject refuse deny
protect secure security guard
secure security protect
security secure protect
encrypt encryption tls crypt cipher
encryption encrypt tls crypt
certificate tls ssl cert
https tls ssl certificate
ssl tls certificate
tls ssl https certificate
signin login authentication
login authentication authenticate signin
logout signout
password credential secret passphrase
credential password secret key token
secret credential password
token key credential
key token
user account member
account user
people user
customer tenant user
customers tenant
tenant tenancy customer
tenancy tenant
team group organization
sso oidc saml login
saml sso
ldap directory login
anonymous guest
folder directory
directory folder
file document
path location
location path place
url link address uri
link url
address url host
domain host
hostname host domain
website site
site website
page document
webpage page
browser client
client browser
server host backend
machine host node server
computer machine host
service server
cluster node
container docker pod
docker container image
kubernetes k8s cluster helm
lambda serverless function
serverless lambda function
cloud hosted
azure microsoft
microsoft azure
aws amazon
gcp google
function method
method function
parameter argument option
argument parameter option flag
option setting flag parameter
flag option argument
setting option configuration preference
settings configuration options
preference setting
configure setup set
variable environment
property attribute field
field property attribute
attribute property field
type kind
class type
object instance
array list
string text
text string
number count
count number
size length
json schema structured
structured json
schema validation
format layout
template layout
theme style appearance
style theme css
css style
color colour
colour color
dark theme
icon image logo
logo icon image
picture image
photo image
image picture
video media
audio voice sound speech
voice audio speech
speech voice audio
recording audio
transcribe transcription
transcription transcribe
translate translation i18n localization
translation translate i18n localization
language locale i18n
languages locale
locale language
multilingual i18n language
internationalization i18n
currency number
multiple several many
several multiple
choose select pick
pick choose select
select choose
own custom
custom own
convert transform
transform convert
entire whole all
gather collect
collect gather ingest scrape
ingest collect send
label tag
tag label
category tag group
truncate cut shorten
shorten truncate
guid uuid id
sign signature
signature sign verify
hash checksum digest
checksum hash
corrupt damaged repair
damaged corrupt repair
delay wait sleep
interval period frequency
frequency interval
region zone
zone region
input parameter
output result
result output
compile build
build compile
minify compress
lint check style
profile performance
dependency package
registry repository
artifact package
volume storage mount
autoscale scaling
balance balancer
traffic request
canary rollout
toggle flag switch
switch toggle change
hotkey shortcut keyboard
shortcut keyboard
accessibility a11y
a11y accessibility
seo metadata
crawl crawler scrape
scrape crawl
robots crawler
feed rss
invite member user
owner admin
invoice billing
snippet code example
highlight syntax
escape quote
encode encoding
serialize serialization json
marshal serialize
regex regexp pattern
pattern regex glob
wildcard glob pattern
glob wildcard pattern
nested nesting
inherit inheritance extend
extend extension inherit
reuse shared include
shared common reuse
runtime dynamic
prerender static ssg
preload prefetch
contribute contributing
bug issue
vulnerability security cve
responsive mobile
apart separate isolation
date time
schedule cron time
cron schedule
timer timeout
timeout duration
slow performance speed latency
fast performance speed
faster performance speed optimize
speed performance bandwidth
performance speed optimize
optimize performance improve
improve optimize
bandwidth speed limit
memory ram
ram memory
cpu performance
scale scaling scalability
scaling scale
grow scale
big large
huge large
large big
small little
smaller reduce
reduce minimize shrink
shrink reduce compact downsample
compress compression gzip
compression compress gzip
bundle package
package bundle module
module package plugin
plugin extension addon integration
extension plugin
addon plugin extension
integrate integration connect
integration integrate plugin
connect connection link
connection connect
socket connection
network connection
proxy gateway tunnel
gateway proxy
vpn tunnel proxy
firewall network
port listen
listen port
cache caching memoize
caching cache
cached cache
duplicate deduplicate deduplication
duplicates deduplicate deduplication
dedupe duplicate deduplication
twice duplicate
unique distinct
merge combine join
combine merge join union
join merge combine union
split divide shard sharding chunk partition
shard sharding split partition
piece chunk part
pieces chunk
chunk piece split
partition shard split
copy clone duplicate
clone copy
sync synchronize mirror
synchronize sync
mirror sync replicate
replicate replica mirror
rename move
move rename
sort order
order sort
filter exclude include
exclude ignore skip filter
ignore exclude skip
skip ignore exclude
include import
import include
replace substitute override
override replace
rollback revert undo
revert rollback undo
undo revert rollback
history version
version release
release version
changelog release
compare difference diff
difference diff compare
diff difference compare
log logging
logging log
logs logging
audit log
trail log
monitor monitoring observe metrics
monitoring metrics observability
metric metrics monitoring
observability monitoring tracing telemetry
trace tracing span
tracing trace
telemetry metrics statistics
analytics statistics telemetry
statistics analytics usage metrics
notify notification alert
notification notify alert
notified alert notification
notifications notify alert
alert notification warning
alerts alerting
email mail smtp
mail email
chat message conversation
message chat
conversation chat thread history
thread conversation
bot agent assistant chatbot
chatbot chat assistant
assistant agent
agent assistant
llm model
model llm
prompt instruction
answer response reply
reply response answer
response reply answer
request call
call invoke request
invoke call
body payload
payload body
header headers
cookie session
session cookie
query search request
endpoint route api
route endpoint path router
routing route router
redirect forward
forward redirect proxy
webhook hook callback
hook callback webhook
callback hook
event hook
middleware hook
subscribe subscription
subscription subscribe
publish publication deploy
stream streaming
streaming stream
realtime stream websocket live
queue job
job task worker
task job
worker job
background async job
asynchronous async
parallel concurrent concurrency
simultaneously parallel concurrent
concurrency parallel
step stage
workflow pipeline
pipeline workflow
ci pipeline automation
automate automation
automatic auto automatically
automatically auto automatic
manual manually
approve approval confirm
approval approve confirm
confirm confirmation approve
condition if conditional
conditional condition
loop iterate repeat
iterate loop each
plural count
database db sql
table database
sql database query
bucket storage s3 object
s3 bucket
nfs filesystem
drive disk mount
disk storage drive
mount attach
share sharing
sharing share
public publish expose
expose publish public
private internal
test testing
testing test
tests testing
mock stub fake
fake mock stub
stub mock
simulate mock
dry-run preview
preview staging
sandbox isolate
isolate isolation separate
separate isolate isolation
environment env
staging environment preview
production deploy live
terminal cli console shell
console terminal cli
shell terminal command
command cli
cli command terminal
gui ui interface dashboard
ui interface gui
dashboard ui console
editor ide
ide editor
vscode editor ide
license licence
licence license
tutorial guide
guide tutorial
example sample
sample example
introduction overview
beginner start
requirement prerequisite
prerequisite requirement
compatible compatibility support
compatibility compatible support
supported support compatibility
limitation limit
default fallback
fallback default
optional option
glossary terms
privacy data personal
gdpr privacy
personal privacy
compliance privacy
health status
status health
heartbeat health
alive health
availability ha redundancy
redundant replica ha
replica replication
failover ha
cost price billing
price pricing cost
billing payment
pay payment billing cost
`

// leads are what a lay word or an idiom stands for in documentation, which does not stand for it in turn. A word with
// hyphens is several words of the question, one after the other.
const leads = `
turn-into convert transform
go-live deploy production publish
make-sure ensure verify
keep-track track monitor
speed-up performance cache optimize
slow-down throttle rate limit
run-out quota limit
cut-down reduce
look-like theme style appearance
looks theme style appearance
sign-in login authentication
signing-in login authentication
log-in login authentication sso
logging-in login authentication
logs-in login authentication
sign-up register account
sign-out logout
log-out logout
turn-off disable shutdown
turn-on enable
switch-off disable
switch-on enable
shut-down shutdown graceful close
get-rid-of delete remove
take-out remove
throw-away delete
set-up setup install configure
roll-back rollback revert
back-up backup
go-back rollback revert
try-again retry
try-out example
give-up stop timeout
look-up lookup search
find-out check
phone-home telemetry analytics usage statistics privacy
phones-home telemetry analytics usage statistics privacy
send-home telemetry privacy
command-line cli terminal
text-file file
single-sign-on sso
role-based rbac
access-control rbac authorization permission
who-may authorization permission rbac
who-can authorization permission rbac
allowed-to authorization permission
vs-code editor ide vscode
visual-studio-code editor ide vscode
open-ai openai
dark-mode theme
real-time stream websocket live
pull-request merge
merge-request pull
word-by-word streaming stream
speak voice speech
at-the-same-time parallel concurrent
in-parallel concurrent concurrency
side-by-side parallel
one-by-one sequential
on-its-own automatic
by-itself automatic
by-hand manual
dry-run preview
two-way bidirectional
high-availability ha
load-balance balancer pool
load-balancing balancer
out-of-memory memory oom
too-many limit rate
too-slow performance
too-long timeout limit
takes-long performance slow timeout
too-big size limit
too-large size limit
how-long timeout duration retention
how-much usage
how-often interval frequency
how-big size
behind-nginx proxy reverse
behind-a-proxy reverse proxy
sub-path subpath prefix proxy base
subfolder subpath prefix base
subdirectory subpath prefix base
nginx proxy reverse ingress
apache proxy reverse
smartphone mobile
laptop local
colleague user team
colleagues user team
coworker user team
developer contributor
developers contributor
attacker security
attack security
attacks security
hacker security
abuse rate limit security
abusers rate limit
spam rate limit captcha
flood rate limit
leak memory secret
leaking pii secret redact
sensitive secret pii redact
outage availability failure
outages availability failure
down unavailable availability
unreachable connection network
freeze hang timeout
stuck hang timeout pending
hangs timeout
blank empty
missing undefined notfound
404 notfound missing
403 forbidden permission
401 unauthorized authentication
429 rate limit
502 gateway proxy
503 unavailable retry
504 timeout gateway
cheaper cost reduce
expensive cost limit
paragraph text block
slug url path
typo spelling
spellcheck spelling
nightly schedule cron
daily schedule cron
hourly schedule cron
monthly schedule cron
newest latest
newer upgrade latest
successor migrate migration replace
predecessor legacy
obsolete deprecated
outdated deprecated legacy
remember memory persist state
forget clear memory
lost recovery
tick checkbox
drop-down select
popup dialog modal
button click action
click button
speedup performance
roles rbac
governance policy
rule policy
rules policy
hook-up connect integrate
plug-in plugin
talk-to connect request
reach access connect
outside external ingress expose
inside internal
from-scratch getting-started new
first-time getting-started quickstart
getting-started quickstart introduction
quick-start quickstart getting-started
newbie getting-started introduction
offline local cache
online hosted
self-hosted install deploy
on-premise install self-hosted
on-prem install self-hosted
vault secret
spreadsheet csv
excel csv
word-count length
counting count metrics
graph chart dashboard metric
graphs chart dashboard metric
chart graph dashboard
plot chart graph
draw render chart
diagram mermaid chart
math latex katex
formula math latex
equation math latex
emoji icon
banner announcement
footer layout
sidebar navigation
menu navigation sidebar
nav navigation
breadcrumbs navigation
table-of-contents toc headings
heading title
caption title
tab tabs
accordion collapse expand
fold collapse
collapsible collapse details
`

type bridges struct {
	words   map[string][]string // others, by a word
	phrases map[string][]phrase // by their first word
}

type phrase struct {
	words  []string
	others []string
}

var fieldBridges = func() bridges {
	b := bridges{map[string][]string{}, map[string][]phrase{}}
	stem := newStemmer("en").of
	for line := range strings.Lines(alike) {
		words := strings.Fields(line)
		if len(words) > 1 {
			b.words[stem(words[0])] = append(b.words[stem(words[0])], words[1:]...)
		}
	}
	for line := range strings.Lines(leads) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		if parts := strings.Split(words[0], "-"); len(parts) > 1 {
			b.phrases[parts[0]] = append(b.phrases[parts[0]], phrase{parts, words[1:]})
		} else {
			b.words[stem(words[0])] = append(b.words[stem(words[0])], words[1:]...)
		}
	}
	return b
}()

// Synonyms are the words of the field that a word of a question may stand for.
func (a *Tokenizer) Synonyms(word string) []string { return fieldBridges.words[a.Stem(word, "en")] }

// SynonymsOfPhrase are those of the words that a question has one after the other, from the first one on, and how many
// words these are.
func SynonymsOfPhrase(words []string) (others []string, n int) {
	if len(words) == 0 {
		return nil, 0
	}
	for _, p := range fieldBridges.phrases[words[0]] {
		if len(p.words) <= n {
			continue
		}
		if m := begins(words, p.words); m > 0 {
			others, n = p.others, m
		}
	}
	return others, n
}

// begins returns how many words a phrase takes at the beginning of others; 0 if it is not there. One other word may stand
// within a phrase of two: "turn it off".
func begins(words, phrase []string) int {
	at := 0
	for i, p := range phrase {
		if i == 1 && len(phrase) == 2 && at+1 < len(words) && words[at] != p {
			at++
		}
		if at == len(words) || words[at] != p {
			return 0
		}
		at++
	}
	return at
}
