export default {
  index: 'Introduction',
  start: 'Start',
  guides: 'Guides',
  reference: 'Reference',
};
