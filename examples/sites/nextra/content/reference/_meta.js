export default {
  queue: 'Queue',
  worker: 'Worker',
  environment: 'Environment variables',
};
