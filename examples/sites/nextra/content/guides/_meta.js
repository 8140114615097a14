export default {
  retries: 'Retries',
  schedules: 'Schedules',
  priorities: 'Priorities',
  shutdown: 'Stopping workers',
};
