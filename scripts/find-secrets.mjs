// Runs a command, shows its output, and fails if the output contains a secret or a private text:
//   node scripts/find-secrets.mjs npx vitest run
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const keys = new URL('../test/fixtures/keys/', import.meta.url)
const linesOfKeys = readdirSync(keys)
  .filter((name) => name.includes('private'))
  .flatMap((name) => readFileSync(new URL(name, keys), 'utf8').split('\n'))
  .filter((line) => line.length > 40 && !line.startsWith('-----'))

const patterns = [
  /-----BEGIN (RSA |EC |ENCRYPTED )?PRIVATE KEY-----/,
  /\bBearer [A-Za-z0-9_-]{20,}/,
  /\b(access_token|refresh_token|client_secret|code_verifier)["']?[=:]\s*["']?[A-Za-z0-9_-]{20,}/,
  /the password of [a-z]+/,
  /a key that is only good for tests/,
  /the private word that nobody may read/,
  /\$argon2id\$/,
]

const [command, ...args] = process.argv.slice(2)
if (command === undefined) {
  console.error('Usage: node scripts/find-secrets.mjs <command>, such as: npx vitest run')
  process.exit(2)
}

const child = spawn(command, args, {
  stdio: ['inherit', 'pipe', 'pipe'],
  env: { ...process.env, TEST_LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'trace', NO_COLOR: '1' },
})
const found = []
for (const [stream, out] of [
  [child.stdout, process.stdout],
  [child.stderr, process.stderr],
]) {
  let rest = ''
  stream.setEncoding('utf8').on('data', (text) => {
    out.write(text)
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    found.push(...lines.filter(hasSecret))
  })
  stream.on('end', () => found.push(...[rest].filter(hasSecret)))
}

child.on('close', (code) => {
  for (const line of found.slice(0, 20)) console.error(`Secret in the output: ${line.slice(0, 200)}`)
  if (found.length > 0) console.error(`${found.length} lines contain secrets or private texts.`)
  process.exit(code || (found.length > 0 ? 1 : 0))
})

function hasSecret(line) {
  return patterns.some((pattern) => pattern.test(line)) || linesOfKeys.some((key) => line.includes(key))
}
