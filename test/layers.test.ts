import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The first pattern that fits a path gives its layer: a file imports from its own layer or from a lower one. */
const layers: readonly (readonly [RegExp, number])[] = [
  [
    /^src\/(errors|logging\/(loop-lag|outage-log)|config\/(schemas|variables\/|mail-settings|tracing-settings|make-folder|setting-files|software|split-list))\b/,
    0,
  ],
  [/^src\/(protocol|networks|concurrency|languages)\//, 1],
  [/^(src\/persistence|embedded-postgres|migrations)\//, 2],
  [
    /^src\/(jobs\/|config\/(config|variables|addresses|isolation|(backup|limit|shown|sign-up|staff|storage|worker)-settings)\.ts$|services\/(services|tracer|in-span|pod-crypto|remote-pod-client)\.ts$)/,
    3,
  ],
  [/^src\/domain\//, 4],
  [/^src\/federation\//, 5],
  [/^(src\/web|workers)\/(?!main\.ts$)/, 6],
  [/^src\/(operations|take-over|logging|services|config)\//, 7],
  [/^(src\/server\.ts|workers\/main\.ts|bin\/)/, 8],
]

/** Libraries that only these folders may import, so that each can be exchanged there. */
const allowedFolders: Readonly<Record<string, RegExp>> = {
  bullmq: /^(src\/jobs|workers)\//,
  ioredis: /^src\/jobs\//,
  fastify: /^src\/(web\/|operations\/|server\.ts$)/,
  'oidc-provider': /^src\/web\/oidc\//,
  piscina: /^(workers\/threads|src\/web\/pages)\//,
  'ipaddr.js': /^src\/networks\//,
  'intl-messageformat': /^src\/languages\//,
  nodemailer: /^src\/domain\/mail\/smtp\//,
  saxes: /^src\/protocol\//,
  sharp: /^workers\//,
  undici: /^src\/federation\/remote-pod\//,
  commander: /^bin\//,
  aws4fetch: /^src\/persistence\/s3\//,
  'age-encryption': /^src\/operations\/backup\//,
  '@simplewebauthn/server': /^src\/domain\/accounts\/factors\//,
  'pg-copy-streams': /^src\/persistence\/database\//,
  mysql2: /^src\/take-over\/source\//,
}

/** The protocol is a library of pure functions: no network, database, file, clock, setting or logger. */
const purePackages = ['node:crypto', 'node:buffer', 'saxes', 'ajv', 'ajv-formats', 'htmlparser2']

const files = ['src', 'workers', 'bin', 'migrations', 'embedded-postgres'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path)),
)

function layerOf(path: string): number {
  const layer = layers.find(([pattern]) => pattern.test(path))?.[1]
  if (layer === undefined) throw new Error(`${path} has no layer in ${relative(root, import.meta.filename)}`)
  return layer
}

const IMPORT = /^import\s(?:[^'"]*\sfrom\s)?'([^']+)'/gm
const REEXPORT = /^export\s(?:type\s)?(?:\*[^'"]*|\{[^}]*\})\sfrom\s'([^']+)'/gm
const DYNAMIC_IMPORT = /\bimport\('([^']+)'\)/g

function importsOf(path: string): string[] {
  const source = readFileSync(join(root, path), 'utf8')
  return [IMPORT, REEXPORT, DYNAMIC_IMPORT].flatMap((pattern) =>
    [...source.matchAll(pattern)].flatMap((match) => match[1] ?? []),
  )
}

function violationsIn(path: string): string[] {
  return importsOf(path).flatMap((name) => {
    if (!name.startsWith('.')) {
      const library = name.startsWith('@') ? name : (name.split('/')[0] ?? name)
      if (path.startsWith('src/protocol/') && !purePackages.includes(name)) return [`${path} is not pure: ${name}`]
      return allowedFolders[library]?.test(path) === false ? [`${path} must not import ${library}`] : []
    }
    const target = join(dirname(path), name).replace(/\.js$/, '.ts')
    // The compiler makes sure that services.ts holds nothing but types.
    const up = layerOf(target) > layerOf(path)
    const across = layerOf(target) === 6 && layerOf(path) === 6 && target.startsWith('src') !== path.startsWith('src')
    return up || across ? [`${path} imports ${target}`] : []
  })
}

it('imports only from the same or a lower layer', () => {
  expect(files.length).toBeGreaterThan(30)
  expect(files.flatMap(violationsIn)).toEqual([])
})

it('recognizes an import from a higher layer', () => {
  expect(layerOf('src/jobs/outbox/run-or-add.ts')).toBeLessThan(layerOf('src/domain/accounts/accounts.ts'))
  expect(layerOf('src/web/server/app.ts')).toBeLessThan(layerOf('src/services/open-services.ts'))
})

/** Type-only imports are gone after compilation, and models refer to each other as tables do. */
const RUNTIME_IMPORT = /^import\s(?!type\s)(?:[^'"]*\sfrom\s)?'(\.[^']+)'/gm
const RUNTIME_REEXPORT = /^export\s(?!type\s)(?:\*[^'"]*|\{[^}]*\})\sfrom\s'(\.[^']+)'/gm

function runtimeImportsOf(path: string): string[] {
  const source = readFileSync(join(root, path), 'utf8')
  return [RUNTIME_IMPORT, RUNTIME_REEXPORT].flatMap((pattern) =>
    [...source.matchAll(pattern)]
      // Every name inside the braces may be a type of its own.
      .filter(([statement]) => !/\{(?:\s*type\s[^,}]+,?)+\s*\}/.test(statement))
      .map((match) => join(dirname(path), match[1] ?? '').replace(/\.js$/, '.ts')),
  )
}

function cyclesAmong(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: readonly string[]) => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file) || path.includes(file)) return
    for (const next of imports.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return cycles
}

it('has no cycle of imports outside the models', () => {
  const others = files.filter((path) => !path.startsWith('src/persistence/models/'))
  expect(cyclesAmong(new Map(others.map((path) => [path, runtimeImportsOf(path)])))).toEqual([])
})

it('recognizes a cycle of imports', () => {
  const imports = new Map([
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['b']],
  ])
  expect(cyclesAmong(imports)).toEqual(['b → c → b'])
})

/** A constant that begins like a statement, or like a part of one. */
const SQL_CONSTANT =
  /^(?:export )?const (\w+) = `\(?\s*(?:select|insert|update|delete|with|exists|case|coalesce|not exists|do \$\$|truncate)\b/gm

it('has constants of SQL whose names end in _SQL', () => {
  const found = files.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(SQL_CONSTANT)].map(([, name = '']) => name),
  )

  expect(found.length).toBeGreaterThan(100)
  expect(found.filter((name) => !name.endsWith('_SQL'))).toEqual([])
})

/** A function that returns a string, with its body. */
const TEXT_FUNCTION = /^(?:export )?function (\w+)\([^)]*\): string \{\n([\s\S]*?)\n\}/gm
const SQL_TEMPLATE = /`[^`]*\b(?:select|exists|insert into|update|delete from|is null|is not null)\b/

it('has functions that return SQL whose names end in Sql', () => {
  const names = files
    .filter((path) => /^src\/(?:persistence|take-over\/build)\//.test(path) && !path.endsWith('opaque-param.ts'))
    .flatMap((path) => [...readFileSync(join(root, path), 'utf8').matchAll(TEXT_FUNCTION)])
    .flatMap(([, name = '', body = '']) => (SQL_TEMPLATE.test(body) ? [name] : []))

  expect(names.length).toBeGreaterThan(50)
  expect(names.filter((name) => !/Sql$|^sql[A-Z]/.test(name))).toEqual([])
})

it('passes the services of a request to the use cases of the console, so that their rows have its trace', () => {
  const withServicesOfApp = files.filter(
    (path) =>
      path.startsWith('src/web/console/') &&
      /\bapp\.services\b|\{ services[ ,].*= app\b/.test(readFileSync(join(root, path), 'utf8')),
  )

  // The check of access, and results that several requests share.
  expect(withServicesOfApp.toSorted()).toEqual(
    ['access', 'overview', 'queues'].map((name) => `src/web/console/${name}.ts`),
  )
})

/** A result of `raw`, whose rows have the type `any`, is used. */
const UNTYPED_RESULT = /(?:=\s*|\(|return )await [\w.]+\.raw\(/

it('reads the rows of statements with a type', () => {
  const untyped = files.filter(
    (path) =>
      !path.startsWith('migrations/') &&
      !path.endsWith('persistence/database/database.ts') &&
      UNTYPED_RESULT.test(readFileSync(join(root, path), 'utf8')),
  )

  expect('const { rows } = await db.raw(text)').toMatch(UNTYPED_RESULT)
  expect(untyped, 'use queryRows, queryRow or changeRows').toEqual([])
})
