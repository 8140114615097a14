package model

// unanswerable are questions that a reader might well ask and that the documentation of the corpus does not answer:
// another product's features, prices, history, people, opinions, and things that the product does not do.
var unanswerable = []judged{
	{Corpus: "vite", Query: "How much does a Vite enterprise license cost per seat?"},
	{Corpus: "vite", Query: "How do I compile Rust crates to a native binary with Vite?"},
	{Corpus: "vite", Query: "Who won the football world cup in 2018?"},
	{Corpus: "vite", Query: "How do I connect my app to a MongoDB database and run migrations?"},
	{Corpus: "docusaurus", Query: "How do I accept credit card payments with Stripe checkout?"},
	{Corpus: "docusaurus", Query: "Can Docusaurus transcode uploaded videos to HLS?"},
	{Corpus: "docusaurus", Query: "What salary do the maintainers get?"},
	{Corpus: "docusaurus", Query: "How do I roll back a Kubernetes deployment?"},
	{Corpus: "hugo", Query: "How do I set up a PostgreSQL replica?"},
	{Corpus: "hugo", Query: "Does Hugo have a visual drag and drop editor for iPad?"},
	{Corpus: "hugo", Query: "How do I bake sourdough bread?"},
	{Corpus: "hugo", Query: "How do I send a newsletter to my subscribers every Monday?"},
	{Corpus: "fastapi", Query: "How do I train a neural network on a GPU cluster?"},
	{Corpus: "fastapi", Query: "What is the phone number of customer support?"},
	{Corpus: "fastapi", Query: "How do I write a Terraform module for an AWS VPC?"},
	{Corpus: "fastapi", Query: "Is there a refund policy for annual subscriptions?"},
	{Corpus: "electron", Query: "How do I publish my app to the Apple TV home screen?"},
	{Corpus: "electron", Query: "How do I mine bitcoin with the graphics card?"},
	{Corpus: "electron", Query: "Which airline has the cheapest flights to Lisbon?"},
	{Corpus: "electron", Query: "How do I write a Kafka consumer with exactly-once semantics?"},
	{Corpus: "prometheus", Query: "How do I record a podcast episode?"},
	{Corpus: "prometheus", Query: "How can I translate my invoices into Japanese?"},
	{Corpus: "prometheus", Query: "Does Prometheus offer a mobile app with face recognition login?"},
	{Corpus: "prometheus", Query: "What are the opening hours of the office in Berlin?"},
	{Corpus: "mintlify", Query: "How do I train a horse to jump?"},
	{Corpus: "mintlify", Query: "How do I configure BGP peering between two routers?"},
	{Corpus: "mintlify", Query: "What is the boiling point of ethanol?"},
	{Corpus: "mintlify", Query: "How do I rotate the shards of my Elasticsearch cluster?"},
}
