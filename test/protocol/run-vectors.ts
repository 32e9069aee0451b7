/** Runs a file of test vectors: one line for each that fails, and a count at the end. `VECTORS` names another file. */
import { pathToFileURL } from 'node:url'
import { checksOf } from './check-vectors.js'
import { readVectors } from './vectors.js'

const bundled = new URL('../vectors/federation.json', import.meta.url)
const file = process.env['VECTORS']

let failed = 0
const checks = checksOf(readVectors(file ? pathToFileURL(file) : bundled))
for (const { name, run } of checks) {
  try {
    run()
  } catch (error) {
    failed += 1
    console.log(`failed  ${oneLine(name)}  ${oneLine(error instanceof Error ? error.message : String(error))}`)
  }
}
console.log(`${checks.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 400)
}
