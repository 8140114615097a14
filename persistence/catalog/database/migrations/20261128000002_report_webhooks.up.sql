-- Webhooks of weekly reports become outgoing webhooks. The program does that and then drops their tables
-- (work/reporthooks.go):
-- DROP TABLE report_deliveries
-- DROP TABLE report_hooks
SELECT 1
