import { expect, it } from 'vitest'
import { renderScreen } from '../../bin/start/screen.js'
import { readConfig } from '../../src/config/config.js'

/** The lines of the start screen about commands, for these settings. */
function commandLinesWith(settings: Record<string, string>): readonly string[] {
  const config = readConfig(settings)
  const web = { address: 'http://127.0.0.1:5700', admin: null, pid: 1 }
  const worker = { address: null, admin: null, pid: 1 }
  const lines = renderScreen({ config, databaseUrl: '', databasePid: 1, web, worker, warnings: [] }, false)
  return lines.filter((line) => / (user create|seed) /.test(line)).map((line) => line.trim().replace(/ +/g, ' '))
}

it('the start screen has the exact commands for an account and for sample data', () => {
  process.argv[1] = 'dist/bin/pod.js'

  expect(commandLinesWith({ PORT: '5700' })).toEqual([
    'Accounts npx pod user create alice (in another terminal)',
    'Sample data npx pod seed (two users with posts and a conversation)',
  ])
  expect(commandLinesWith({ PORT: '5700', DATA_DIR: 'var/two' })[0]).toBe(
    'Accounts DATA_DIR=var/two npx pod user create alice (in another terminal)',
  )
})

it('the start screen names files outside of the current folder with their whole path', () => {
  process.argv[1] = '/opt/pod/dist/bin/pod.js'

  expect(commandLinesWith({ PORT: '5700', DATA_DIR: '/var/lib/pod' })[0]).toBe(
    'Accounts DATA_DIR=/var/lib/pod node /opt/pod/dist/bin/pod.js user create alice (in another terminal)',
  )
})

it('the start screen of a public pod offers no sample data', () => {
  expect(commandLinesWith({ POD_URL: 'https://pod.example' })).toHaveLength(1)
})
