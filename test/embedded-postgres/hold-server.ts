import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'

// Stays as long as the test that started it.
process.on('message', () => undefined)

const [dataDir = ''] = process.argv.slice(2)
try {
  const { url, pid, startedHere } = await startEmbeddedPostgres(dataDir, { fast: true })
  process.send?.({ url, pid, startedHere })
} catch (error) {
  process.send?.({ refusal: error instanceof Error ? error.message : String(error) })
}
