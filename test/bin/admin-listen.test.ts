import { expect, it } from 'vitest'
import { adminListenOfWorker } from '../../bin/start/admin-listen.js'
import { readConfig } from '../../src/config/config.js'

it.each([
  ['9394', '127.0.0.1:9395'],
  ['0.0.0.0:9394', '0.0.0.0:9395'],
  ['[::1]:9394', '[::1]:9395'],
  ['localhost:0', 'localhost:0'],
  ['/run/pod/admin', '/run/pod/admin.worker'],
  ['', undefined],
  [undefined, undefined],
])('a web process at %s gives the worker the admin address %s', (ofWeb, ofWorker) => {
  const { adminListen } = readConfig({ ADMIN_LISTEN: ofWeb })

  expect(adminListenOfWorker(adminListen)).toBe(ofWorker)
})
