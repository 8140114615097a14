export default {
  installation: 'Installation',
  'first-job': 'Your first job',
};
