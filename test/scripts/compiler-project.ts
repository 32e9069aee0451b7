/** Stands for tsc: no network is needed to install it, and what it does is easy to see. */
const compiler = `#!/usr/bin/env node
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
mkdirSync('dist', { recursive: true })
writeFileSync('dist/arguments.json', JSON.stringify(process.argv.slice(2)))
for (const folder of ['src', 'bin'].filter(existsSync)) {
  mkdirSync('dist/' + folder, { recursive: true })
  for (const name of readdirSync(folder)) {
    const text = readFileSync(folder + '/' + name, 'utf8')
    if (text.includes('mistake')) {
      console.log('there is a mistake in ' + name)
      process.exit(2)
    }
    writeFileSync('dist/' + folder + '/' + name.replace(/ts$/, 'js'), text)
  }
}
`

export function manifest(version: string) {
  return {
    name: 'project',
    version,
    private: true,
    engines: { node: '>=20.19' },
    scripts: { build: 'tsc' },
    devDependencies: { typescript: 'file:compiler' },
  }
}

export function lockFile(version: string) {
  const compilerEntry = { name: 'typescript', version, bin: { tsc: 'tsc.mjs' }, dev: true }
  const { name, devDependencies } = manifest(version)
  return {
    name,
    version,
    lockfileVersion: 3,
    packages: {
      '': { name, version, devDependencies },
      compiler: compilerEntry,
      'node_modules/typescript': { resolved: 'compiler', link: true },
    },
  }
}

/** A project whose compiler is in the project itself. */
export function filesOf(version: string): Record<string, string> {
  return {
    'package.json': JSON.stringify(manifest(version)),
    'package-lock.json': JSON.stringify(lockFile(version)),
    'compiler/package.json': JSON.stringify({ name: 'typescript', version, type: 'module', bin: { tsc: 'tsc.mjs' } }),
    'compiler/tsc.mjs': compiler,
    'tsconfig.json': '{}',
    'src/pod.ts': 'one',
  }
}
