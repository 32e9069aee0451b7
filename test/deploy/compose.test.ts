import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

interface Service {
  readonly image?: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly ports?: readonly string[]
  readonly networks: readonly string[]
  readonly cap_drop?: readonly string[]
  readonly cap_add?: readonly string[]
  readonly [key: string]: unknown
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean; readonly ipam?: unknown } | null>>
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>
}

async function readDeployFile(name: string): Promise<string> {
  return readFile(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')
}

async function readCompose(name: string): Promise<Compose> {
  return parse(await readDeployFile(name), { merge: true })
}

/** Settings of the pod, from the example file, which names all of them. */
async function readSettingNames(): Promise<ReadonlySet<string>> {
  const text = await readFile(new URL('../../.env.example', import.meta.url), 'utf8')
  const names = [...text.matchAll(/^# ([A-Z_]+)=/gm)].map(([, name = '']) => name)
  return new Set(names.flatMap((name) => [name, `${name}_FILE`]))
}

describe.each(['compose.yaml', 'compose.single.yaml'])('%s', (name) => {
  it('gives each container only the rights and mounts that it needs', async () => {
    for (const [service, values] of Object.entries((await readCompose(name)).services)) {
      expect(values, service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        stop_grace_period: '40s',
        mem_limit: expect.stringMatching(/^\d+[mg]$/),
        logging: { driver: 'json-file', options: { 'max-size': expect.any(String), 'max-file': expect.any(String) } },
      })
      expect(values['tmpfs'], service).toContain('/tmp')
      expect(values.image, service).toMatch(/^[a-z]+:[0-9][0-9.]*$/)
    }
  })

  it('opens ports at Caddy alone', async () => {
    const { services } = await readCompose(name)

    expect(Object.keys(services).filter((service) => services[service]?.ports !== undefined)).toEqual(['caddy'])
    expect(services['caddy']?.cap_add).toEqual(['NET_BIND_SERVICE'])
  })

  it('trusts the subnet of Caddy, and names settings that exist', async () => {
    const { services, networks } = await readCompose(name)
    const settings = await readSettingNames()
    const ofPod = Object.values(services).filter(({ image }) => image?.startsWith('pod:'))

    expect(ofPod.length).toBeGreaterThan(0)
    for (const { environment = {} } of ofPod) {
      expect(Object.keys(environment).filter((setting) => !settings.has(setting))).toEqual([])
      expect(networks['front']).toEqual({ ipam: { config: [{ subnet: environment['TRUST_PROXY'] }] } })
      expect(JSON.stringify(environment)).not.toMatch(/password|:\/\/[^/]*@/i)
    }
  })
})

describe('compose.yaml', () => {
  it('runs the migrations before web and worker', async () => {
    const { services } = await readCompose('compose.yaml')

    expect(services['migrate']).toMatchObject({ command: ['db', 'migrate'], restart: 'no' })
    for (const service of ['web', 'worker']) {
      expect(services[service]?.depends_on?.['migrate']).toEqual({ condition: 'service_completed_successfully' })
      expect(services[service]?.command).toEqual([service])
    }
  })

  it('keeps the stores on a network without a way out', async () => {
    const { services, networks } = await readCompose('compose.yaml')

    expect(networks['stores']).toEqual({ internal: true })
    expect(services['postgres']?.networks).toEqual(['stores'])
    expect(services['redis']?.networks).toEqual(['stores'])
    // Other pods must be reachable from both.
    expect(services['worker']?.networks).toContain('outside')
    expect(services['web']?.networks).toEqual(['front', 'stores'])
  })

  it('has a durable queue and a database with checksums', async () => {
    const { services } = await readCompose('compose.yaml')

    expect(services['redis']?.command?.join(' ')).toBe(
      'redis-server --appendonly yes --appendfsync always --maxmemory-policy noeviction',
    )
    expect(services['postgres']).toMatchObject({
      environment: { POSTGRES_INITDB_ARGS: expect.stringContaining('--data-checksums') },
      shm_size: '256m',
      healthcheck: { test: ['CMD', 'pg_isready', '-U', 'pod', '-d', 'pod'] },
    })
  })

  it('passes secrets as files', async () => {
    const { services, secrets } = await readCompose('compose.yaml')

    expect(Object.keys(secrets ?? {}).toSorted()).toEqual(['database-password', 'database-url', 'secret-key'])
    expect(services['web']?.environment).toMatchObject({
      DATABASE_URL_FILE: '/run/secrets/database-url',
      SECRET_KEY_FILE: '/run/secrets/secret-key',
    })
  })
})
