import type { Config } from '../../config/config.js'

/** The addresses at which the old pod has named pictures of its own. */
export function ownPhotoPaths(
  { host, s3, imageRedirectUrl }: Pick<Config, 'host' | 's3' | 'imageRedirectUrl'>,
  uploads?: string,
): readonly string[] {
  const hosts = [host, `www.${host}`]
  // A pod that has begun under another port, or named the default one.
  const withPorts = hosts.flatMap((name) =>
    name.includes(':') ? [name] : [name, `${name}:80`, `${name}:443`, `${name}:3000`],
  )
  return [
    ...withPorts.flatMap((name) => [`http://${name}`, `https://${name}`]),
    ...(imageRedirectUrl === undefined ? [] : [imageRedirectUrl]),
    ...(s3 === undefined ? [] : bucketAddresses(s3)),
  ]
    .map((address) => `${address}/uploads/images/`)
    .concat(uploads === undefined ? [] : pathsOfUploads(uploads, s3))
}

/** The addresses of `--uploads`, if the old pod has its pictures in a bucket. */
function pathsOfUploads(uploads: string, s3: Config['s3']): readonly string[] {
  const base = uploads.replace(/\/+$/, '')
  if (/^https?:/.test(base)) return [`${base}/images/`]
  if (!base.startsWith('s3://') || s3 === undefined) return []
  const { hostname, pathname } = new URL(base)
  return bucketAddresses({ ...s3, bucket: hostname }).map(
    (address) => `${address}${pathname.replace(/\/$/, '')}/images/`,
  )
}

/** The forms in which the old pod has named its bucket. */
function bucketAddresses({ bucket, region, endpoint }: NonNullable<Config['s3']>): readonly string[] {
  const hosts = [
    `${bucket}.s3.amazonaws.com`,
    `s3.amazonaws.com/${bucket}`,
    `${bucket}.s3.${region}.amazonaws.com`,
    `${bucket}.s3-${region}.amazonaws.com`,
    `s3.${region}.amazonaws.com/${bucket}`,
    `s3-${region}.amazonaws.com/${bucket}`,
  ]
  const pathStyleAddresses = endpoint === undefined ? [] : [`${endpoint.replace(/\/+$/, '')}/${bucket}`]
  return [...hosts.flatMap((name) => [`https://${name}`, `http://${name}`]), ...pathStyleAddresses]
}
