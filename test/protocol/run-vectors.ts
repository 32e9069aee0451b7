/**
 * Runs a file of test vectors: one line for each that fails, and a count at the end. `VECTORS` names another file. A file without any
 * vectors fails as well, for it shows nothing.
 */
import { pathToFileURL } from 'node:url'
import { checksOf, type VectorCheck } from './check-vectors.js'
import { readVectors } from './vectors.js'

const bundled = new URL('../vectors/federation.json', import.meta.url)
const file = process.env['VECTORS']

const checks = readChecks()
const failed = checks.filter((check) => !passes(check)).length
console.log(`${checks.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 && checks.length > 0 ? 0 : 1

function readChecks(): readonly VectorCheck[] {
  try {
    return checksOf(readVectors(file ? pathToFileURL(file) : bundled))
  } catch (error) {
    console.log(`unreadable  ${file ?? 'the bundled file'}  ${reasonOf(error)}`)
    return []
  }
}

function passes({ name, run }: VectorCheck): boolean {
  try {
    run()
    return true
  } catch (error) {
    console.log(`failed  ${oneLine(name)}  ${reasonOf(error)}`)
    return false
  }
}

function reasonOf(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error))
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 400)
}
