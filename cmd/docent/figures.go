package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"docent/health"
)

var (
	descBuild = prometheus.NewDesc("docent_build_info", "How this server was built; the value is 1.",
		[]string{"version", "revision", "goversion"}, nil)
	descReady = prometheus.NewDesc("docent_start_duration_seconds",
		"Time from the start of the server until it took requests; 0 before.", nil, nil)
	descCrashed = prometheus.NewDesc("docent_start_after_crash", "1 where the server before this one crashed.", nil, nil)
	descDisk    = prometheus.NewDesc("docent_disk_size_bytes", "Size of the disk of the data directory.", nil, nil)
	descFree    = prometheus.NewDesc("docent_disk_free_bytes",
		"Bytes on the disk of the data directory that the server may still use.", nil, nil)
	descBackup = prometheus.NewDesc("docent_backup_last_success_timestamp_seconds",
		"When the last backup was begun that was completed; 0 where none was made.", nil, nil)
	descBackupFailed = prometheus.NewDesc("docent_backup_failed", "1 where the last backup failed.", nil, nil)
	descLeftOut      = prometheus.NewDesc("docent_projects_left_out",
		"Projects that are not read because the server ended while it read them.", nil, nil)
)

// processFigures are the metrics of what belongs to no room.
type processFigures struct{ *app }

func (f processFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBuild, descReady, descCrashed, descDisk, descFree, descBackup, descBackupFailed,
		descLeftOut} {
		ch <- d
	}
}

func (f processFigures) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	yes := map[bool]float64{true: 1}
	v := buildVersion()
	gauge(descBuild, 1, v.Version, v.Commit, v.Go)
	gauge(descReady, float64(f.upkeep.ready.Load())/1e9)
	gauge(descCrashed, yes[f.dir.Crashed])
	if disk, err := health.DiskOf(f.config.Data); err == nil { // some systems do not say
		gauge(descDisk, float64(disk.Total))
		gauge(descFree, float64(disk.Free))
	}
	if f.nodes == nil { // with the journal in PostgreSQL the database's own backups count
		backup := f.backups.Status()
		made := 0.0
		if backup.Made != nil {
			made = float64(backup.Made.Began.Unix())
		}
		gauge(descBackup, made)
		gauge(descBackupFailed, yes[backup.Failed != nil])
	}
	gauge(descLeftOut, float64(len(f.stores.source.LeftOut())))
}
