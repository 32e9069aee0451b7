import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { findNewerRelease } from '../../src/domain/operations/newer-release.js'
import { checkForUpdate, registerUpdateMetric } from '../../src/operations/update-check.js'
import { serveHttp } from '../support/http/scripted-server.js'
import { buildPod } from '../support/pods/build-pod.js'

it('the newest version is read once a day, by a request without data of the pod; never without a URL', async () => {
  const requests: string[] = []
  let answer = '{"version": "99.0.0"}'
  const server = await serveHttp((request, response) => {
    requests.push(JSON.stringify({ ...request.headers, url: request.url }))
    response.end(answer)
  })
  await using test = await buildPod({ web: false })
  const { pod } = test
  const config = { ...pod.config, updateCheckUrl: `http://127.0.0.1:${server.port}/latest.json` }
  const tomorrow = () =>
    pod
      .db('periodic')
      .where({ name: 'update-check' })
      .update({ lastRunAt: pod.db.raw(`now() - interval '25 hours'`) })
  const registry = new Registry()
  registerUpdateMetric(registry, { ...pod, config }, '1.0.0')

  await checkForUpdate(pod)
  await checkForUpdate({ ...pod, config: { ...config, isolated: true } })
  expect(requests).toEqual([])
  expect(await registry.metrics()).toMatch(/^pod_update_available 0$/m)

  await Promise.all([1, 2, 3].map(() => checkForUpdate({ ...pod, config })))
  expect(requests).toHaveLength(1)
  expect(requests[0]).not.toContain('pod.example')
  expect(requests[0]).not.toMatch(/diaspora|1\.0\.0/)
  expect(await findNewerRelease(pod, '1.0.0')).toBe('99.0.0')
  expect(await findNewerRelease(pod, '99.0.0')).toBeUndefined()
  expect(await findNewerRelease(pod, '100.0.0')).toBeUndefined()
  expect(await registry.metrics()).toMatch(/^pod_update_available 1$/m)

  for (const wrong of ['{"version": "<script>"}', 'not JSON', '{}']) {
    answer = wrong
    await tomorrow()
    await checkForUpdate({ ...pod, config })
  }
  expect(requests).toHaveLength(4)
  expect(await findNewerRelease(pod, '1.0.0')).toBe('99.0.0')
  await server.close()
})
