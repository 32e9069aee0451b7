import { expect, it, vi } from 'vitest'
import { filesOf } from './compiler-project.js'
import { makeProject, run, write } from './project.js'

function pod(words: string): string {
  return `process.once('SIGTERM', () => {
  console.log('pod that said ${words} ends')
  clearInterval(alive)
})
const alive = setInterval(() => undefined, 1_000)
console.log('pod says ${words} as ' + process.pid)
`
}

it('dev runs the compiled pod, restarts it after a change that compiles, and ends it on exit', async () => {
  const project = await makeProject({ ...filesOf('1.0.0'), 'bin/pod.ts': pod('one') })

  const dev = run(project, 'dev.mjs')
  await dev.line(/pod says one/)
  await write(project, 'bin/pod.ts', 'a mistake')
  await dev.line(/Building failed/)
  await write(project, 'bin/pod.ts', pod('two'))
  const second = await dev.line(/pod says two/)
  dev.process.kill('SIGTERM')
  const { output } = await dev.ended

  const told = output.split('\n').filter((line) => line.startsWith('pod'))
  expect(told.map((line) => line.replace(/ as \d+/, ''))).toEqual([
    'pod says one',
    'pod that said one ends',
    'pod says two',
    'pod that said two ends',
  ])
  const last = Number(/\d+$/.exec(second)?.[0])
  await vi.waitFor(() => expect(() => process.kill(last, 0)).toThrow('ESRCH'))
})
