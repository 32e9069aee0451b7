// Preloaded into processes of tests: accounts get keys of 2048 bits. A key of 4096 bits takes eight times as long, more than a second.
const crypto = require('node:crypto')
const { syncBuiltinESMExports } = require('node:module')

const generate = crypto.generateKeyPairSync
crypto.generateKeyPairSync = (type, options) =>
  generate(type, type === 'rsa' ? { ...options, modulusLength: 2048 } : options)
syncBuiltinESMExports()
