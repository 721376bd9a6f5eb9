// Ids that do not depend on the folder in which it is built: CI builds it elsewhere and compares.
module.exports = { optimization: { moduleIds: 'natural' } };
