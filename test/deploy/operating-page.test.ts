import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { lastStage, readDockerfile, valuesOf } from './dockerfile.js'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

describe('docs/operating.md', () => {
  it('sets the host name before the first command of docker compose, each of which needs it', async () => {
    const page = await read('docs/operating.md')
    const blocks = page.split('```').filter((block) => block.includes('docker compose -f'))

    expect(await read('deploy/compose.yaml')).toContain('${POD_HOST:?')
    expect(blocks.length).toBeGreaterThan(2)
    expect(page.indexOf('export POD_HOST=')).toBeLessThan(page.indexOf('docker compose -f'))
    for (const block of blocks.filter((each) => each.includes('user create alice'))) {
      expect(block.indexOf('export POD_HOST=')).toBeLessThan(block.indexOf('docker compose -f'))
      expect(block).toContain('export POD_HOST=')
    }
  })

  it('makes the folder above the picture cache of nginx, and obtains the certificate where nginx serves the challenge', async () => {
    const [page, site] = [await read('docs/operating.md'), await read('deploy/nginx.conf')]
    const [, cache = ''] = /^proxy_cache_path (\S+)/m.exec(site) ?? []
    const [, root = ''] = /location \/\.well-known\/acme-challenge\/ \{\s+root (\S+);/.exec(site) ?? []

    expect(page).toContain(`mkdir -p ${dirname(cache)}\n`)
    expect(page).toContain(`--webroot -w ${root} `)
  })
})

describe('a volume of compose.yaml', () => {
  it('belongs to the user of the image', async () => {
    const { services } = parse(await read('deploy/compose.yaml'), { merge: true })
    const folders = (services.web.volumes as readonly string[]).map((volume) => volume.split(':')[1] ?? '')
    const commands = valuesOf(lastStage(await readDockerfile()), 'RUN').join(' && ')

    expect(folders).toEqual(['/data/uploads'])
    for (const folder of folders) {
      expect(commands).toMatch(
        new RegExp(`install --directory --owner=10001 --group=10001 --mode=\\d+ ${folder}(?: |$)`),
      )
    }
  })
})
