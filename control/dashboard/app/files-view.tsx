/** The files of a runtime task: the directories of its workspace, previews and downloads. */
import { useEffect, useState } from 'preact/hooks'
import type { TaskFileListing } from '../../../shared/contract/task-files.ts'
import { bytesText } from '../model/amounts.ts'
import {
  imageTypeOf,
  MAX_IMAGE_BYTES,
  MAX_TEXT_BYTES,
  outerOf,
  type Preview,
  pathIn,
  textPreview,
} from '../model/file-preview.ts'
import type { GraphTask } from '../model/wire.ts'
import { request } from './api.ts'
import { faultOf } from './fault.ts'
import { JsonTree } from './json-tree.tsx'
import { Note } from './parts.tsx'
import { useJson } from './use-json.ts'

interface ShownFile {
  readonly path: string
  readonly size: number
}

export function FilesView({ path, task }: { path: string; task: GraphTask }) {
  const [directory, setDirectory] = useState('')
  const [shown, setShown] = useState<ShownFile>()
  const [failed, setFailed] = useState<string>()
  const address = `${path}/files?path=${encodeURIComponent(directory)}`
  const { value: listing, fault } = useJson<TaskFileListing>(address, `${task.attempt ?? 0} ${task.status}`)
  const addressOf = (file: string) => `${path}/files/${file.split('/').map(encodeURIComponent).join('/')}`
  const enter = (to: string) => {
    setDirectory(to)
    setShown(undefined)
  }
  const download = (file: string) => {
    setFailed(undefined)
    save(addressOf(file), file.slice(file.lastIndexOf('/') + 1)).catch((error) => setFailed(faultOf(error).message))
  }
  return (
    <div class="files">
      <p class="file-directory">
        <span>/{directory}</span>
        {directory !== '' && (
          <button type="button" class="small" onClick={() => enter(outerOf(directory))}>
            Up
          </button>
        )}
      </p>
      {fault !== undefined && <Note kind="fault">{fault.message}</Note>}
      {failed !== undefined && <Note kind="fault">{failed}</Note>}
      {fault === undefined && listing === undefined && <Note kind="quiet">Reading …</Note>}
      {listing?.entries.length === 0 && <Note kind="quiet">The directory is empty.</Note>}
      {listing !== undefined && listing.entries.length > 0 && (
        <ul aria-label="Files">
          {listing.entries.map(({ name, type, size = 0 }) => {
            const file = pathIn(directory, name)
            const open = () => (type === 'directory' ? enter(file) : setShown({ path: file, size }))
            const isOpenable = type === 'directory' || type === 'file'
            return (
              <li key={name}>
                {isOpenable ? (
                  <button type="button" class="file-name" aria-expanded={shown?.path === file} onClick={open}>
                    {name}
                    {type === 'directory' && '/'}
                  </button>
                ) : (
                  <span class="file-name">{name}</span>
                )}
                <span class="quiet">{type === 'file' ? bytesText(size) : isOpenable ? '' : type}</span>
                {type === 'file' && (
                  <button type="button" class="small" aria-label={`Download ${name}`} onClick={() => download(file)}>
                    Download
                  </button>
                )}
              </li>
            )
          })}
        </ul>
      )}
      {listing?.truncated === true && <p class="quiet">The directory has more entries.</p>}
      {shown !== undefined && <FilePreview key={shown.path} file={shown} address={addressOf(shown.path)} />}
    </div>
  )
}

function FilePreview({ file: { path, size }, address }: { file: ShownFile; address: string }) {
  const [preview, setPreview] = useState<Preview>()
  useEffect(() => {
    const gone = new AbortController()
    previewOf(path, size, address, gone.signal)
      .catch((error): Preview => ({ kind: 'none', why: faultOf(error).message }))
      .then((found) => {
        if (!gone.signal.aborted) setPreview(found)
      })
    return () => gone.abort()
  }, [path, size, address])
  return (
    <section class="file-preview" aria-label={`Preview of ${path}`}>
      <h3>{path}</h3>
      {preview === undefined && <Note kind="quiet">Reading …</Note>}
      {preview?.kind === 'none' && <Note kind="quiet">{preview.why}</Note>}
      {preview?.kind === 'image' && <img src={preview.url} alt={path} />}
      {preview?.kind === 'json' && <JsonTree value={preview.value} />}
      {preview?.kind === 'text' && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls has to be reached by keyboard
        <pre tabIndex={0}>{preview.text}</pre>
      )}
      {preview?.kind === 'text' && preview.isCut && (
        <p class="quiet">The first {bytesText(MAX_TEXT_BYTES)} of the file. Download has all of it.</p>
      )}
    </section>
  )
}

async function previewOf(path: string, size: number, address: string, signal: AbortSignal): Promise<Preview> {
  const type = imageTypeOf(path)
  if (type !== undefined) {
    if (size > MAX_IMAGE_BYTES) return { kind: 'none', why: 'The image is too large to be shown.' }
    const bytes = await (await request(address, { signal })).arrayBuffer()
    return { kind: 'image', url: await dataUrl(new Blob([bytes], { type })) }
  }
  if (size === 0) return { kind: 'none', why: 'The file is empty.' }
  const headers = { range: `bytes=0-${MAX_TEXT_BYTES - 1}` }
  const bytes = await (await request(address, { headers, signal })).arrayBuffer()
  return textPreview(path, new Uint8Array(bytes), size)
}

/** Only data: addresses and those of the service are allowed for images. */
const dataUrl = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })

/** Saves a file under its name. A link would save a refusal in its place. */
async function save(address: string, name: string): Promise<void> {
  const bytes = await (await request(address)).blob()
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
