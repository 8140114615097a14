-- Comments on lines of which it is not stored yet what became of them.
CREATE INDEX comments_sent ON comments (id) WHERE state = 'sent'
