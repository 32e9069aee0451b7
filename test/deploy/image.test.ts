import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { lastStage, readDockerfile, valuesOf } from './dockerfile.js'

describe('the container image', () => {
  it('has a base with a digest, the same in each stage', async () => {
    const bases = valuesOf(await readDockerfile(), 'FROM')

    expect(bases.map((base) => base.replace(/ AS .*/, ''))).toEqual(
      Array(bases.length).fill(bases[0]?.replace(/ AS .*/, '')),
    )
    expect(bases[0]).toMatch(/^node:\d+-bookworm-slim@sha256:[0-9a-f]{64} AS build$/)
    expect(bases.join()).not.toMatch(/--platform|latest/)
  })

  it('runs as a numeric user who has a line in /etc/passwd', async () => {
    const stage = lastStage(await readDockerfile())

    expect(valuesOf(stage, 'USER')).toEqual(['10001:10001'])
    expect(valuesOf(stage, 'RUN').join()).toMatch(/useradd --uid 10001 --gid 10001/)
  })

  it('starts node directly, stops on SIGTERM, and is checked without curl', async () => {
    const stage = lastStage(await readDockerfile())

    expect(valuesOf(stage, 'ENTRYPOINT').map((value) => JSON.parse(value))).toEqual([['node', 'dist/bin/pod.js']])
    expect(valuesOf(stage, 'CMD').map((value) => JSON.parse(value))).toEqual([['start']])
    expect(valuesOf(stage, 'STOPSIGNAL')).toEqual(['SIGTERM'])
    expect(valuesOf(stage, 'HEALTHCHECK')).toEqual([
      expect.stringMatching(/CMD \["node", "-e", "fetch\(.*\/health\/live/),
    ])
  })

  it('keeps its data in a volume, and no secret in an argument or variable', async () => {
    const instructions = await readDockerfile()
    const variables = [...valuesOf(instructions, 'ENV'), ...valuesOf(instructions, 'ARG')].join(' ')

    expect(valuesOf(instructions, 'VOLUME')).toEqual(['/data'])
    expect(variables).toContain('DATA_DIR=/data')
    expect(variables).not.toMatch(/SECRET|PASSWORD|TOKEN|DATABASE_URL|REDIS_URL/)
  })

  it('has labels for source, revision and licence', async () => {
    const labels = valuesOf(lastStage(await readDockerfile()), 'LABEL').join(' ')

    for (const label of ['source="$SOURCE_URL"', 'revision="$REVISION"', 'licenses="AGPL-3.0-or-later"']) {
      expect(labels).toContain(`org.opencontainers.image.${label}`)
    }
  })

  it('gets named paths only from the build context', async () => {
    const ignored = await readFile(new URL('../../.dockerignore', import.meta.url), 'utf8')
    const [first, ...others] = ignored.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    const copied = valuesOf(await readDockerfile(), 'COPY')
      .filter((value) => !value.startsWith('--from'))
      .flatMap((value) => value.split(' ').slice(0, -1))

    expect(first).toBe('*')
    expect(others.every((line) => line.startsWith('!'))).toBe(true)
    expect(copied.filter((path) => !others.some((line) => `!${path}/`.startsWith(`${line}/`)))).toEqual([])
  })
})
